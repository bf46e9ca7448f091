// A protected API in Java 17, with Jackson and nothing else (Debian: libjackson2-databind-java):
// J=/usr/share/java AUTH_URL=http://127.0.0.1:8000 PORT=9000
// java -cp $J/jackson-databind.jar:$J/jackson-core.jar:$J/jackson-annotations.jar ProtectedApi.java
import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.math.BigInteger;
import java.net.*;
import java.net.http.*;
import java.nio.file.*;
import java.security.*;
import java.security.spec.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.Pattern;
import java.util.zip.InflaterInputStream;

public class ProtectedApi {
  static final String ISSUER = System.getenv("AUTH_URL"), AUDIENCE = "InvoicingAPI";
  static final String FOLDER = System.getenv("FOLDER");  // where lists and keys outlive a restart
  static final int MAX_LIST_BYTES = 2 * 1024 * 1024, LEEWAY = 10;  // the latter in seconds
  static final Duration PATIENCE = Duration.ofSeconds(3);
  static final Map<String, String> NEEDED = Map.of("GET", "documents:view", "POST", "documents:submit");
  static final Pattern BEARER = Pattern.compile("Bearer +([\\w.-]+)", Pattern.CASE_INSENSITIVE);
  static final ObjectMapper JSON = new ObjectMapper()
      .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY, DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
  static final HttpClient HTTP = HttpClient.newBuilder().connectTimeout(PATIENCE).build();  // no redirects

  static class Refused extends Exception {
    final int status;
    final String error;

    Refused(int status, String error, String description) {
      super(description);
      this.status = status;
      this.error = error;
    }
  }

  static Refused invalid(String text) { return new Refused(401, "invalid_token", text); }

  static Refused unavailable() {
    return new Refused(503, "temporarily_unavailable", "Tokens cannot be checked right now. Try again.");
  }

  /** What an answer of the service says; `iat` of a status list. Times are in seconds. */
  record Facts<T>(T value, long iat, double made, double freshUntil, double usableUntil) {}

  /** Reads an answer that came `at`; `known` is what was known before, or null. */
  interface Reader<T> { Facts<T> read(String body, double at, Facts<T> known) throws Exception; }

  static final Map<String, Published<?>> ALL = new ConcurrentHashMap<>();

  /** A timer fetches it again before it is too old, so no request waits; in an outage the last answer is used. */
  static class Published<T> {
    final String url;
    final Reader<T> reader;
    volatile Facts<T> facts;
    volatile double triedAt;
    volatile boolean hasFailed;

    Published(String url, Reader<T> reader) { this.url = url; this.reader = reader; }

    @SuppressWarnings("unchecked")
    static <T> Published<T> at(String url, Reader<T> reader) {
      return (Published<T>) ALL.computeIfAbsent(url, missing -> new Published<>(url, reader));
    }

    T value() throws Refused {
      // The timer is late only if this process was stopped for a while.
      if (facts == null || now() >= Math.min(facts.usableUntil, facts.freshUntil + 5)) renew();
      if (facts == null || now() >= facts.usableUntil) throw unavailable();
      return facts.value;
    }

    synchronized void renew() {
      if (now() < triedAt + 1) return;  // another request has just tried
      triedAt = now();
      try {
        var request = HttpRequest.newBuilder(URI.create(url)).timeout(PATIENCE).build();
        var answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) throw new IOException("" + answer.statusCode());
        facts = reader.read(answer.body(), now(), facts);
        hasFailed = false;
        if (FOLDER != null) {
          var written = Files.writeString(Path.of(FOLDER, "new-" + file().getFileName()), answer.body());
          Files.move(written, file(), StandardCopyOption.ATOMIC_MOVE);
        }
      } catch (Exception error) {
        hasFailed = true;
        if (facts == null) facts = fromDisk();
        if (facts != null)  // the next try is a second before
          facts = new Facts<>(facts.value, facts.iat, facts.made, now() + 2, facts.usableUntil);
      }
    }

    Path file() { return Path.of(FOLDER, URLEncoder.encode(url, UTF_8)); }

    Facts<T> fromDisk() {
      try {
        return reader.read(Files.readString(file()), Files.getLastModifiedTime(file()).toMillis() / 1e3, null);
      } catch (Exception error) {
        return null;
      }
    }
  }

  static double now() { return System.currentTimeMillis() / 1e3; }

  static JsonNode decoded(String part) throws IOException { return JSON.readTree(Base64.getUrlDecoder().decode(part)); }

  // --- Keys and signatures

  record Key(String algorithm, PublicKey key) {}

  static Facts<JsonNode> readMetadata(String body, double at, Facts<JsonNode> known) throws Exception {
    var value = JSON.readTree(body);
    if (!ISSUER.equals(value.path("issuer").asText())) throw new IOException("of another issuer");
    return new Facts<>(value, 0, at, at + 300, at + 86_400);
  }

  static Facts<Map<String, Key>> readKeys(String body, double at, Facts<Map<String, Key>> known) throws Exception {
    var keys = new HashMap<String, Key>();
    for (var jwk : JSON.readTree(body).path("keys"))
      keys.put(jwk.path("kid").asText(), new Key(jwk.path("alg").asText(), publicKey(jwk)));
    return new Facts<>(keys, 0, at, at + 60, at + 3_600);
  }

  static PublicKey publicKey(JsonNode jwk) throws GeneralSecurityException {
    if (jwk.path("kty").asText().equals("RSA"))
      return KeyFactory.getInstance("RSA").generatePublic(new RSAPublicKeySpec(number(jwk, "n"), number(jwk, "e")));
    var curve = AlgorithmParameters.getInstance("EC");
    curve.init(new ECGenParameterSpec("secp256r1"));
    var point = new ECPoint(number(jwk, "x"), number(jwk, "y"));
    var spec = new ECPublicKeySpec(point, curve.getParameterSpec(ECParameterSpec.class));
    return KeyFactory.getInstance("EC").generatePublic(spec);
  }

  static BigInteger number(JsonNode jwk, String member) {
    return new BigInteger(1, Base64.getUrlDecoder().decode(jwk.path(member).asText()));
  }

  static boolean isSigned(Key key, String signed, byte[] signature) throws GeneralSecurityException {
    var verifier = Signature.getInstance(switch (key.algorithm) {
      case "ES256" -> "SHA256withECDSAinP1363Format";
      case "RS256" -> "SHA256withRSA";
      case "PS256" -> "RSASSA-PSS";
      default -> throw new NoSuchAlgorithmException(key.algorithm);
    });
    if (key.algorithm.equals("PS256"))
      verifier.setParameter(new PSSParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA256, 32, 1));
    verifier.initVerify(key.key);
    verifier.update(signed.getBytes(UTF_8));
    return verifier.verify(signature);
  }

  /** An unknown key is looked up, at most every 5 seconds. */
  static Key keyOf(String kid) throws Refused {
    var metadata = Published.at(ISSUER + "/.well-known/oauth-authorization-server", ProtectedApi::readMetadata);
    var keys = Published.at(metadata.value().path("jwks_uri").asText(), ProtectedApi::readKeys);
    if (!keys.value().containsKey(kid) && now() >= keys.triedAt + 5) keys.renew();
    if (!keys.value().containsKey(kid) && keys.hasFailed) throw unavailable();  // it may be a new key
    return keys.value().get(kid);
  }

  /** The claims of a JWT of this issuer and type, whose signature and times are right. */
  static JsonNode claimsOf(String encoded, String type) throws Refused {
    try {
      var parts = encoded.split("\\.", -1);
      JsonNode header = decoded(parts[0]), claims = decoded(parts[1]);
      var key = keyOf(header.path("kid").asText());
      boolean isOurs = parts.length == 3 && type.equals(header.path("typ").asText()) && !header.has("crit")
          && key != null && key.algorithm.equals(header.path("alg").asText())
          && ISSUER.equals(claims.path("iss").asText())
          && isSigned(key, parts[0] + "." + parts[1], Base64.getUrlDecoder().decode(parts[2]));
      double begins = Math.max(claims.path("iat").asDouble(Double.MAX_VALUE), claims.path("nbf").asDouble());
      if (isOurs && begins - LEEWAY <= now() && now() < claims.path("exp").asDouble() + LEEWAY) return claims;
    } catch (IOException | IllegalArgumentException | IndexOutOfBoundsException | GeneralSecurityException error) {
      // Not a JWT that we can read: as one that is not ours.
    }
    throw invalid("The token is expired, foreign or meant for another API. Log in again.");
  }

  // --- Access tokens

  static JsonNode verify(List<String> authorization) throws Refused {
    // All headers of that name: a proxy could read another one than this API.
    var match = BEARER.matcher(authorization == null || authorization.size() != 1 ? "" : authorization.get(0));
    if (!match.matches()) throw invalid("Send the header Authorization: Bearer, followed by one token.");
    var token = claimsOf(match.group(1), "at+jwt");
    var aud = token.path("aud");
    if (!AUDIENCE.equals(aud.asText()) && !(aud.isArray() && texts(aud).contains(AUDIENCE))) throw invalid("The token is meant for another API.");
    for (var name : List.of("sub", "client_id", "jti", "scope", "taxpayer"))
      if (!token.hasNonNull(name)) throw invalid("The token lacks " + name + ". Log in again.");
    if (token.has("cnf")) throw invalid("The token is bound to a key of its client.");
    if (token.has("act") && !token.path("permissions").isArray()) throw invalid("Log in again.");
    if (token.has("status")) checkStatus(token.path("status").path("status_list"));
    return token;
  }

  static Set<String> texts(JsonNode claim) {
    var found = new HashSet<>(List.of(claim.isArray() ? new String[0] : claim.asText().split(" ")));
    for (var one : claim) found.add(one.asText());
    return found;
  }

  static void require(JsonNode token, String scope, String permission) throws Refused {
    boolean mayAll = !token.has("permissions");  // the taxpayer acts for itself
    if (!texts(token.path("scope")).contains(scope))
      throw new Refused(403, "insufficient_scope", "The scope " + scope + " is needed.");
    if (!mayAll && !texts(token.path("permissions")).contains(permission))
      throw new Refused(403, "insufficient_scope", "The permission " + permission + " is needed.");
  }

  /** The bit of an ended token is set. Never ask an address that is not the issuer's own. */
  static void checkStatus(JsonNode place) throws Refused {
    String uri = place.path("uri").asText();
    if (!uri.startsWith(ISSUER + "/status/")) throw invalid("Log in again.");
    Reader<byte[]> reader = (body, at, known) -> readList(uri, body, at, known);
    var bits = Published.at(uri, reader).value();
    long index = place.path("idx").asLong(-1);
    if (index < 0 || index >= 8L * bits.length) throw invalid("The token has no place in its list. Log in again.");
    if ((bits[(int) (index / 8)] >> index % 8 & 1) == 1) throw invalid("The token is no longer active. Log in again.");
  }

  static Facts<byte[]> readList(String uri, String body, double at, Facts<byte[]> known) throws Exception {
    var claims = claimsOf(body, "statuslist+jwt");
    var list = claims.path("status_list");
    long iat = claims.path("iat").asLong();
    if (!uri.equals(claims.path("sub").asText()) || list.path("bits").asInt() != 1) throw new IOException("another list");
    // A node that has lost its database answers with its last list: never go back to an older one.
    if (known != null && iat < known.iat) throw new IOException("an older list");
    var packed = new ByteArrayInputStream(Base64.getUrlDecoder().decode(list.path("lst").asText()));
    var bits = new InflaterInputStream(packed).readNBytes(MAX_LIST_BYTES + 1);
    if (bits.length > MAX_LIST_BYTES) throw new IOException("too long");
    double made = known != null && iat == known.iat ? known.made : at;  // it is no newer than before
    return new Facts<>(bits, iat, made, at + claims.path("ttl").asLong(5), claims.path("exp").asDouble() + LEEWAY);
  }

  // --- The API

  static Map<String, Object> status() {
    var known = ALL.values().stream().filter(one -> one.facts != null).toList();
    var failed = ALL.values().stream().filter(one -> one.hasFailed).map(one -> one.url).toList();
    double made = known.stream().mapToDouble(one -> one.facts.made).min().orElse(now());
    double usable = known.stream().mapToDouble(one -> one.facts.usableUntil).min().orElse(now());
    return Map.of("age_seconds", now() - made, "usable_seconds", usable - now(), "failed", failed);
  }

  static void handle(HttpExchange exchange) throws IOException {
    var headers = exchange.getResponseHeaders();
    int code = 200;
    Object body;
    try {
      if (exchange.getRequestURI().getPath().equals("/health")) body = status();
      else {
        var token = verify(exchange.getRequestHeaders().get("Authorization"));
        require(token, "InvoicingAPI", NEEDED.getOrDefault(exchange.getRequestMethod(), ""));
        var answer = JSON.createObjectNode().put("taxpayer", token.path("sub").asText());
        if (exchange.getRequestMethod().equals("POST")) code = 201;
        else answer.put("actor", token.path("act").path("sub").asText(null));
        body = answer;
      }
    } catch (Refused | RuntimeException error) {
      var refused = error instanceof Refused known ? known : unavailable();
      code = refused.status;
      body = Map.of("error", refused.error, "error_description", refused.getMessage());
      if (code == 503) headers.set("Retry-After", "5");
      else headers.set("WWW-Authenticate", "Bearer error=\"" + refused.error + "\"");
    }
    headers.set("Content-Type", "application/json");
    byte[] sent = JSON.writeValueAsBytes(body);
    exchange.sendResponseHeaders(code, sent.length);
    exchange.getResponseBody().write(sent);
    exchange.close();
  }

  public static void main(String[] arguments) throws IOException {
    Executors.newScheduledThreadPool(1).scheduleWithFixedDelay(() -> {
      for (var one : ALL.values()) if (one.facts != null && now() >= one.facts.freshUntil - 1) one.renew();
    }, 500, 500, TimeUnit.MILLISECONDS);
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "9000"));
    var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.createContext("/", ProtectedApi::handle);
    server.setExecutor(Executors.newCachedThreadPool());
    server.start();
  }
}
