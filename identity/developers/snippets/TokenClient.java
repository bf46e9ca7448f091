import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;

/** Fetches access tokens, and uses each until shortly before it expires. Java 17 or newer. */
public class TokenClient {
  /** There is no token; the text says what to do, and ends with a reference for support. */
  static class Refused extends Exception {
    Refused(String description) { super(description); }
  }

  record Stored(String token, Instant renewAt) {}

  static final String AUTH_URL = "http://127.0.0.1:8000";
  static final Duration RENEW_EARLIER = Duration.ofMinutes(5);

  final HttpClient http = HttpClient.newHttpClient();
  final Map<String, Stored> tokens = new ConcurrentHashMap<>();  // one for each taxpayer
  final String form;

  TokenClient(String clientId, String clientSecret) {
    form = "grant_type=client_credentials&client_id=" + encoded(clientId)
        + "&client_secret=" + encoded(clientSecret);
  }

  /** For your own taxpayer (an empty text), or for another one: TIN or TIN:ROB. */
  String token(String onBehalfOf) throws Exception {
    var stored = tokens.get(onBehalfOf);
    if (stored == null || !Instant.now().isBefore(stored.renewAt())) {
      var body = logIn(onBehalfOf);
      var lifetime = Duration.ofSeconds(Long.parseLong(value(body, "expires_in")));
      var renewAt = Instant.now().plus(lifetime).minus(RENEW_EARLIER);
      stored = new Stored(value(body, "access_token"), renewAt);
      tokens.put(onBehalfOf, stored);
    }
    return stored.token();
  }

  String logIn(String onBehalfOf) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(AUTH_URL + "/connect/token"))
        .header("Content-Type", "application/x-www-form-urlencoded")
        .timeout(Duration.ofSeconds(10))
        .POST(BodyPublishers.ofString(form));
    if (!onBehalfOf.isEmpty()) request.header("onbehalfof", onBehalfOf);
    for (int attempt = 0; ; attempt++) {
      HttpResponse<String> answer = http.send(request.build(), BodyHandlers.ofString());
      int status = answer.statusCode();
      if (status == 200) return answer.body();
      if ((status != 429 && status != 503) || attempt == 4)
        throw new Refused(value(answer.body(), "error_description"));
      long seconds = answer.headers().firstValueAsLong("Retry-After").orElse(1L << attempt);
      Thread.sleep(seconds * 1000);
    }
  }

  /** Of a flat JSON object in which no text has a quotation mark. A JSON library does it, too. */
  static String value(String json, String name) {
    var match = Pattern.compile("\"" + name + "\": *\"?((?<=\")[^\"]*|\\d+)").matcher(json);
    if (!match.find()) throw new IllegalStateException("No " + name + " in the answer.");
    return match.group(1);
  }

  static String encoded(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8);
  }

  static String setting(String name) throws Refused {
    var text = System.getenv(name);
    if (text == null || text.isEmpty()) throw new Refused("Set " + name + ".");
    return text;
  }

  public static void main(String[] arguments) throws Exception {
    try {
      var client = new TokenClient(setting("CLIENT_ID"), setting("CLIENT_SECRET"));
      var onBehalfOf = System.getenv().getOrDefault("ONBEHALFOF", "");
      for (int call = 1; call <= 2; call++) {  // the second call uses the same token
        var request = HttpRequest.newBuilder(URI.create(AUTH_URL + "/api/v1/me"))
            .header("Authorization", "Bearer " + client.token(onBehalfOf)).build();
        System.out.println(client.http.send(request, BodyHandlers.ofString()).body());
      }
    } catch (Refused refused) {
      System.err.println(refused.getMessage());
      System.exit(1);
    }
  }
}
