<?php

// Fetches access tokens, renews each in time, and uses it meanwhile. PHP 8.1 or newer with curl.
// Where each request is a process of its own, store the tokens outside of it: a file, APCu, Redis.
const AUTH_URL = 'http://127.0.0.1:8000';

/** In seconds, by a clock that only goes forward. */
function now(): float
{
    return hrtime(true) / 1e9;
}

/** There is no token; the text says what to do, and ends with a reference for support. */
class Refused extends Exception
{
}

/** One for each client ID; it stores one token for each taxpayer that you act for. */
class TokenClient
{
    private array $tokens = [];

    public function __construct(private string $clientId, private string $clientSecret)
    {
    }

    /** Calls an API. A token that it does not take any more (401) is replaced once. */
    public function get(string $url, string $onBehalfOf = ''): string
    {
        for ($attempt = 1; ; $attempt++) {
            $request = curl_init($url);
            $bearer = 'Authorization: Bearer ' . $this->token($onBehalfOf);
            curl_setopt_array($request, [CURLOPT_HTTPHEADER => [$bearer], CURLOPT_RETURNTRANSFER => true]);
            $answer = curl_exec($request);
            if (curl_getinfo($request, CURLINFO_RESPONSE_CODE) !== 401 || $attempt === 2) {
                return (string) $answer;
            }
            unset($this->tokens[$onBehalfOf]);
        }
    }

    /** For your own taxpayer (an empty text), or for another one: TIN or TIN:ROB. */
    public function token(string $onBehalfOf = ''): string
    {
        $stored = $this->tokens[$onBehalfOf] ?? null;
        if ($stored === null || now() >= min($stored['renew_at'], $stored['ends_at'])) {
            $stored = $this->tokens[$onBehalfOf] = $this->renewed($stored, $onBehalfOf);
        }
        return $stored['token'];
    }

    /** The next token. While the service is away the old one, until it ends. */
    private function renewed(?array $old, string $onBehalfOf): array
    {
        if ($old !== null) {  // it ended before the pause
            usleep((int) (max(0, $old['renew_at'] - now()) * 1_000_000));
        }
        for ($failures = $old['failures'] ?? 0; ; $failures++) {
            $askedAt = now();  // before the answer, which may be slow
            [$status, $body, $retryAfter] = $this->logIn($onBehalfOf);
            if ($status === 200) {
                // At a random moment, so that not all clients come at once.
                $lifetime = $body['expires_in'];
                return [
                    'token' => $body['access_token'],
                    'renew_at' => $askedAt + $lifetime * random_int(5000, 9000) / 10000,
                    'ends_at' => $askedAt + $lifetime,
                    'failures' => 0,
                ];
            }
            $isUsable = $old !== null && now() < $old['ends_at'];
            if (!in_array($status, [0, 429, 503], true) || ($failures >= 4 && !$isUsable)) {
                throw new Refused($body['error_description']);
            }
            fwrite(STDERR, $body['error_description'] . PHP_EOL);  // your log
            // Longer after each failure, but not the same for all.
            $pause = $retryAfter * 2 ** min($failures, 6) * random_int(100, 150) / 100;
            if ($isUsable) {
                return ['renew_at' => now() + $pause, 'failures' => $failures + 1] + $old;
            }
            usleep((int) ($pause * 1_000_000));
        }
    }

    /** Status (0: no answer), answer, and how many seconds to wait at least. */
    private function logIn(string $onBehalfOf): array
    {
        $retryAfter = 1;
        $request = curl_init(AUTH_URL . '/connect/token');
        curl_setopt_array($request, [
            CURLOPT_POSTFIELDS => http_build_query([
                'grant_type' => 'client_credentials',
                'client_id' => $this->clientId,
                'client_secret' => $this->clientSecret,
            ]),
            CURLOPT_HTTPHEADER => $onBehalfOf === '' ? [] : ["onbehalfof: $onBehalfOf"],
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => 10,
            CURLOPT_HEADERFUNCTION => function ($request, $line) use (&$retryAfter) {
                if (preg_match('/^Retry-After: *(\d+)/i', $line, $match)) {
                    $retryAfter = (int) $match[1];
                }
                return strlen($line);
            },
        ]);
        $answer = curl_exec($request);
        if ($answer === false) {
            return [0, ['error_description' => curl_error($request)], 1];
        }
        $status = curl_getinfo($request, CURLINFO_RESPONSE_CODE);
        return [$status, json_decode($answer, true, flags: JSON_THROW_ON_ERROR), $retryAfter];
    }
}

try {
    $settings = [getenv('CLIENT_ID'), getenv('CLIENT_SECRET')];
    if (!$settings[0] || !$settings[1]) {
        throw new Refused('Set CLIENT_ID and CLIENT_SECRET.');
    }
    $client = new TokenClient(...$settings);
    for ($call = 1; $call <= (getenv('CALLS') ?: 2); $call++) {  // the second call uses the same token
        foreach (explode(' ', getenv('ONBEHALFOF') ?: '') as $taxpayer) {
            echo $client->get(AUTH_URL . '/api/v1/me', $taxpayer), PHP_EOL;
        }
    }
} catch (Refused $refused) {
    fwrite(STDERR, $refused->getMessage() . PHP_EOL);
    exit(1);
}
