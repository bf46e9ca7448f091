// Fetches access tokens, renews each in time, and uses it meanwhile. .NET 10, or the Program.cs of a
// console project of .NET 8.
using System.Text.Json;

try
{
    var client = new TokenClient(Setting("CLIENT_ID"), Setting("CLIENT_SECRET"));
    var onBehalfOf = Environment.GetEnvironmentVariable("ONBEHALFOF") ?? "";
    for (var call = 1; call <= 2; call++)  // the second call uses the same token
        Console.WriteLine(await client.GetAsync($"{TokenClient.AuthUrl}/api/v1/me", onBehalfOf));
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
    readonly Dictionary<string, Stored> tokens = [];

    // In seconds of a clock that only goes forward; failures to renew the token.
    record Stored(string Token, double RenewAt, double EndsAt, int Failures);

    // Calls an API. A token that it does not take any more (401) is replaced once.
    public async Task<string> GetAsync(string url, string onBehalfOf)
    {
        for (var attempt = 1; ; attempt++)
        {
            using var request = new HttpRequestMessage(HttpMethod.Get, url);
            request.Headers.Authorization = new("Bearer", await TokenAsync(onBehalfOf));
            using var answer = await Http.SendAsync(request);
            if ((int)answer.StatusCode != 401 || attempt == 2)
                return await answer.Content.ReadAsStringAsync();
            tokens.Remove(onBehalfOf);
        }
    }

    // For your own taxpayer (an empty text), or for another one: TIN or TIN:ROB.
    public async Task<string> TokenAsync(string onBehalfOf)
    {
        if (!tokens.TryGetValue(onBehalfOf, out var stored) || Now >= Math.Min(stored.RenewAt, stored.EndsAt))
            tokens[onBehalfOf] = stored = await RenewedAsync(stored, onBehalfOf);
        return stored.Token;
    }

    // The next token. While the service is away the old one, until it ends.
    async Task<Stored> RenewedAsync(Stored? old, string onBehalfOf)
    {
        if (old?.RenewAt > Now) await Task.Delay(TimeSpan.FromSeconds(old.RenewAt - Now));  // it ended before the pause
        for (var failures = old?.Failures ?? 0; ; failures++)
        {
            var askedAt = Now;  // before the answer, which may be slow
            var (status, body, retryAfter) = await LogInAsync(onBehalfOf);
            if (status == 200)
            {
                // At a random moment, so that not all clients come at once.
                var lifetime = body.GetProperty("expires_in").GetInt32();
                var renewAt = askedAt + lifetime * (0.5 + 0.4 * Random.Shared.NextDouble());
                return new Stored(body.GetProperty("access_token").GetString()!, renewAt, askedAt + lifetime, 0);
            }
            var isUsable = old is not null && Now < old.EndsAt;
            var description = body.GetProperty("error_description").GetString()!;
            if (status is not (0 or 429 or 503) || (failures >= 4 && !isUsable))
                throw new RefusedException(description);
            Console.Error.WriteLine(description);  // your log
            // Longer after each failure, but not the same for all.
            var pause = retryAfter * (1 << Math.Min(failures, 6)) * (1 + Random.Shared.NextDouble() / 2);
            if (isUsable) return old! with { RenewAt = Now + pause, Failures = failures + 1 };
            await Task.Delay(TimeSpan.FromSeconds(pause));
        }
    }

    // The status is 0 without an answer.
    async Task<(int Status, JsonElement Body, double RetryAfter)> LogInAsync(string onBehalfOf)
    {
        try
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
            return ((int)answer.StatusCode, body, answer.Headers.RetryAfter?.Delta?.TotalSeconds ?? 1);
        }
        catch (Exception error) when (error is HttpRequestException or TaskCanceledException)
        {
            return (0, JsonSerializer.SerializeToElement(new { error_description = error.Message }), 1);
        }
    }

    static double Now => Environment.TickCount64 / 1000.0;
}
