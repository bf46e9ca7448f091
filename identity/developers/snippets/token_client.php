<?php

// Fetches access tokens, and uses each until shortly before it expires. PHP 8.1 or newer with curl.
const AUTH_URL = 'http://127.0.0.1:8000';
const RENEW_EARLIER_SECONDS = 300;

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

    /** For your own taxpayer (an empty text), or for another one: TIN or TIN:ROB. */
    public function token(string $onBehalfOf = ''): string
    {
        [$token, $renewAt] = $this->tokens[$onBehalfOf] ?? ['', 0];
        if (time() >= $renewAt) {
            $body = $this->logIn($onBehalfOf);
            $token = $body['access_token'];
            $this->tokens[$onBehalfOf] = [$token, time() + $body['expires_in'] - RENEW_EARLIER_SECONDS];
        }
        return $token;
    }

    private function logIn(string $onBehalfOf): array
    {
        for ($attempt = 0; ; $attempt++) {
            $retryAfter = 2 ** $attempt;
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
                throw new Refused(curl_error($request));
            }
            $status = curl_getinfo($request, CURLINFO_RESPONSE_CODE);
            $body = json_decode($answer, true, flags: JSON_THROW_ON_ERROR);
            if ($status === 200) {
                return $body;
            }
            if (!in_array($status, [429, 503], true) || $attempt === 4) {
                throw new Refused($body['error_description']);
            }
            sleep($retryAfter);
        }
    }
}

try {
    $settings = [getenv('CLIENT_ID'), getenv('CLIENT_SECRET')];
    if (!$settings[0] || !$settings[1]) {
        throw new Refused('Set CLIENT_ID and CLIENT_SECRET.');
    }
    $client = new TokenClient(...$settings);
    for ($call = 1; $call <= 2; $call++) {  // the second call uses the same token
        $token = $client->token(getenv('ONBEHALFOF') ?: '');
        $request = curl_init(AUTH_URL . '/api/v1/me');
        curl_setopt($request, CURLOPT_HTTPHEADER, ["Authorization: Bearer $token"]);
        curl_setopt($request, CURLOPT_RETURNTRANSFER, true);
        echo curl_exec($request), PHP_EOL;
    }
} catch (Refused $refused) {
    fwrite(STDERR, $refused->getMessage() . PHP_EOL);
    exit(1);
}
