import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;

/** Fetches access tokens, renews each in time, and uses it meanwhile. Java 17 or newer. */
public class TokenClient {
  /** There is no token; the text says what to do, and ends with a reference for support. */
  static class Refused extends Exception {
    Refused(String description) { super(description); }
  }

  /** In seconds of a clock that only goes forward; `failures` to renew the token. */
  record Stored(String token, double renewAt, double endsAt, int failures) {}

  /** `status` is 0 without an answer. */
  record Answer(int status, String body, long retryAfter) {}

  static final String AUTH_URL = "http://127.0.0.1:8000";

  final HttpClient http = HttpClient.newHttpClient();
  final Map<String, Stored> tokens = new ConcurrentHashMap<>();  // one for each taxpayer
  final String form;

  TokenClient(String clientId, String clientSecret) {
    form = "grant_type=client_credentials&client_id=" + encoded(clientId)
        + "&client_secret=" + encoded(clientSecret);
  }

  /** Calls an API. A token that it does not take any more (401) is replaced once. */
  String get(String url, String onBehalfOf) throws Exception {
    for (int attempt = 1; ; attempt++) {
      var request = HttpRequest.newBuilder(URI.create(url))
          .header("Authorization", "Bearer " + token(onBehalfOf)).build();
      var answer = http.send(request, BodyHandlers.ofString());
      if (answer.statusCode() != 401 || attempt == 2) return answer.body();
      tokens.remove(onBehalfOf);
    }
  }

  /** For your own taxpayer (an empty text), or for another one: TIN or TIN:ROB. */
  String token(String onBehalfOf) throws Exception {
    var stored = tokens.get(onBehalfOf);
    if (stored == null || now() >= Math.min(stored.renewAt(), stored.endsAt())) {
      stored = renewed(stored, onBehalfOf);
      tokens.put(onBehalfOf, stored);
    }
    return stored.token();
  }

  /** The next token. While the service is away the old one, until it ends. */
  Stored renewed(Stored old, String onBehalfOf) throws Exception {
    var random = ThreadLocalRandom.current();
    if (old != null) Thread.sleep((long) Math.max(0, (old.renewAt() - now()) * 1000));  // it ended before the pause
    for (int failures = old == null ? 0 : old.failures(); ; failures++) {
      var askedAt = now();  // before the answer, which may be slow
      var answer = logIn(onBehalfOf);
      if (answer.status() == 200) {
        // At a random moment, so that not all clients come at once.
        var lifetime = Long.parseLong(value(answer.body(), "expires_in"));
        var renewAt = askedAt + lifetime * random.nextDouble(0.5, 0.9);
        return new Stored(value(answer.body(), "access_token"), renewAt, askedAt + lifetime, 0);
      }
      boolean isUsable = old != null && now() < old.endsAt();
      boolean isBusy = answer.status() == 0 || answer.status() == 429 || answer.status() == 503;
      var description = answer.status() == 0 ? answer.body() : value(answer.body(), "error_description");
      if (!isBusy || (failures >= 4 && !isUsable)) throw new Refused(description);
      System.err.println(description);  // your log
      // Longer after each failure, but not the same for all.
      double pause = answer.retryAfter() * (1 << Math.min(failures, 6)) * random.nextDouble(1, 1.5);
      if (isUsable) return new Stored(old.token(), now() + pause, old.endsAt(), failures + 1);
      Thread.sleep((long) (pause * 1000));
    }
  }

  Answer logIn(String onBehalfOf) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(AUTH_URL + "/connect/token"))
        .header("Content-Type", "application/x-www-form-urlencoded")
        .timeout(Duration.ofSeconds(10))
        .POST(BodyPublishers.ofString(form));
    if (!onBehalfOf.isEmpty()) request.header("onbehalfof", onBehalfOf);
    try {
      var answer = http.send(request.build(), BodyHandlers.ofString());
      var retryAfter = answer.headers().firstValueAsLong("Retry-After").orElse(1);
      return new Answer(answer.statusCode(), answer.body(), retryAfter);
    } catch (IOException error) {
      return new Answer(0, "The service cannot be reached: " + error, 1);
    }
  }

  static double now() {
    return System.nanoTime() / 1e9;
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
      var taxpayers = System.getenv().getOrDefault("ONBEHALFOF", "").split(" ");
      var calls = Integer.parseInt(System.getenv().getOrDefault("CALLS", "2"));
      for (int call = 1; call <= calls; call++)  // the second call uses the same token
        for (var taxpayer : taxpayers)
          System.out.println(client.get(AUTH_URL + "/api/v1/me", taxpayer));
    } catch (Refused refused) {
      System.err.println(refused.getMessage());
      System.exit(1);
    }
  }
}
