// Fetches access tokens, and uses each until shortly before it expires. .NET 10, or the Program.cs of a
// console project of .NET 8.
using System.Text.Json;

try
{
    var client = new TokenClient(Setting("CLIENT_ID"), Setting("CLIENT_SECRET"));
    var onBehalfOf = Environment.GetEnvironmentVariable("ONBEHALFOF") ?? "";
    for (var call = 1; call <= 2; call++)  // the second call uses the same token
    {
        using var request = new HttpRequestMessage(HttpMethod.Get, $"{TokenClient.AuthUrl}/api/v1/me");
        request.Headers.Authorization = new("Bearer", await client.TokenAsync(onBehalfOf));
        using var answer = await TokenClient.Http.SendAsync(request);
        Console.WriteLine(await answer.Content.ReadAsStringAsync());
    }
    return 0;
}
catch (RefusedException refused)
{
    Console.Error.WriteLine(refused.Message);
    return 1;
}

static string Setting(string name) =>
    Environment.GetEnvironmentVariable(name) is { Length: > 0 } text
        ? text
        : throw new RefusedException($"Set {name}.");

// There is no token; the text says what to do, and ends with a reference for support.
class RefusedException(string description) : Exception(description);

// One for each client ID; it stores one token for each taxpayer that you act for.
class TokenClient(string clientId, string clientSecret)
{
    public const string AuthUrl = "http://127.0.0.1:8000";
    public static readonly HttpClient Http = new() { Timeout = TimeSpan.FromSeconds(10) };
    static readonly TimeSpan RenewEarlier = TimeSpan.FromMinutes(5);
    readonly Dictionary<string, (string Token, DateTime RenewAt)> tokens = [];

    // For your own taxpayer (an empty text), or for another one: TIN or TIN:ROB.
    public async Task<string> TokenAsync(string onBehalfOf)
    {
        if (tokens.TryGetValue(onBehalfOf, out var stored) && DateTime.UtcNow < stored.RenewAt)
            return stored.Token;
        var body = await LogInAsync(onBehalfOf);
        var token = body.GetProperty("access_token").GetString()!;
        var lifetime = TimeSpan.FromSeconds(body.GetProperty("expires_in").GetInt32());
        tokens[onBehalfOf] = (token, DateTime.UtcNow + lifetime - RenewEarlier);
        return token;
    }

    async Task<JsonElement> LogInAsync(string onBehalfOf)
    {
        for (var attempt = 0; ; attempt++)
        {
            using var request = new HttpRequestMessage(HttpMethod.Post, $"{AuthUrl}/connect/token")
            {
                Content = new FormUrlEncodedContent(new Dictionary<string, string>
                {
                    ["grant_type"] = "client_credentials",
                    ["client_id"] = clientId,
                    ["client_secret"] = clientSecret,
                }),
            };
            // On this one request: a default header of the client would go to every call.
            if (onBehalfOf.Length > 0) request.Headers.Add("onbehalfof", onBehalfOf);
            using var answer = await Http.SendAsync(request);
            var body = JsonSerializer.Deserialize<JsonElement>(await answer.Content.ReadAsStringAsync());
            if (answer.IsSuccessStatusCode) return body;
            if ((int)answer.StatusCode is not (429 or 503) || attempt == 4)
                throw new RefusedException(body.GetProperty("error_description").GetString()!);
            await Task.Delay(answer.Headers.RetryAfter?.Delta ?? TimeSpan.FromSeconds(1 << attempt));
        }
    }
}
