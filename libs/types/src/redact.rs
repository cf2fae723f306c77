//! Addresses as they may be shown: in printed settings, in errors, in `Debug`.

/// What stands for a secret.
pub const BLANKED: &str = "********";

/// Parameters of a URL that hold no secret; the values of all others are blanked.
const HARMLESS: &[&str] = &["sslmode", "application_name", "protocol", "db"];

/// `secret`, blanked; empty stays empty, so that one sees that it is missing.
pub fn blanked(secret: &str) -> String {
    if secret.is_empty() {
        String::new()
    } else {
        BLANKED.to_owned()
    }
}

/// A URL, or several separated by commas, without user, password, fragment and the values of parameters.
///
/// The user goes too: a NATS token stands in its place. What cannot be told apart (a password that is not escaped, an
/// address in a form of its own) is blanked rather than guessed at.
pub fn redacted_url(url: &str) -> String {
    if url.contains(char::is_whitespace) && url.contains('=') {
        // `host=… password=…`, as libpq has it.
        return BLANKED.to_owned();
    }
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => (format!("{scheme}://"), rest),
        _ => (String::new(), url),
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (place, tail) = rest.split_at(end);
    if tail.contains('@') {
        return format!("{scheme}{BLANKED}");
    }
    format!("{scheme}{}{}", without_users(place), without_values(tail))
}

/// Each `user:password@` blanked. Between two of them only what looks like `host:port` is shown: a password may hold
/// an `@` or a comma of its own.
fn without_users(place: &str) -> String {
    let mut pieces = place.split('@').skip(1).peekable();
    if pieces.peek().is_none() {
        return place.to_owned();
    }
    let mut shown = BLANKED.to_owned();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            shown.push('@');
            shown.push_str(piece);
        } else if let Some((host, _)) = piece.split_once(',').filter(|(host, _)| is_host_port(host)) {
            shown.push_str(&format!("@{host},{BLANKED}"));
        }
    }
    shown
}

fn is_scheme(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn is_host_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// `?name=value&…` with the values blanked that may be secret; a fragment goes wholly.
fn without_values(tail: &str) -> String {
    let Some(query) = tail.strip_prefix('?') else {
        return String::new();
    };
    let query = query.split('#').next().unwrap_or_default();
    let shown: Vec<String> = query.split('&').map(parameter).collect();
    format!("?{}", shown.join("&"))
}

fn parameter(text: &str) -> String {
    match text.split_once('=') {
        Some((name, _)) if HARMLESS.contains(&name) => text.to_owned(),
        Some((name, _)) => format!("{name}={BLANKED}"),
        None => blanked(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_secret_stays_readable() {
        for url in [
            "",
            "redis://cache:6379",
            "nats://one:4222,nats://two:4222",
            "one:4222,two:4222",
            "postgres://db/colloquy?sslmode=require",
            "http://history:7100",
        ] {
            assert_eq!(redacted_url(url), url);
        }
        for (url, shown) in [
            (
                "postgres://app:s3cret@db:5432/x?sslmode=require&password=s3cret",
                "postgres://********@db:5432/x?sslmode=require&password=********",
            ),
            (
                "rediss://app:s3c@ret@cache:6379/1",
                "rediss://********@cache:6379/1",
            ),
            (
                "nats://app:s3cret@one:4222,app:s3cret@two:4222",
                "nats://********@one:4222,********@two:4222",
            ),
            (
                "https://me:s3cret@models.example/v1",
                "https://********@models.example/v1",
            ),
        ] {
            assert_eq!(redacted_url(url), shown);
        }
    }

    #[test]
    fn a_secret_is_shown_from_no_place() {
        for url in [
            "postgres://h/db?user=u&password=SECRET",
            "postgres://h/db?user=u&password=a@SECRET",
            "postgres:///db?host=/run/pg&options=-c%20SECRET",
            "postgres://u:SECRET@h/db#SECRET",
            "postgres://u:a/SECRET@h/db",
            "postgres://u:a?SECRET@h/db",
            "postgres://u:a#SECRET@h/db",
            "host=h user=u password=SECRET",
            "redis://:SECRET@h:6379",
            "unix:///run/redis.sock?user=u&pass=SECRET",
            "nats://SECRET@h:4222",
            "SECRET@h:4222",
            "u:SECRET@h:4222",
            "nats://h:4222,nats://SECRET@two:4222",
            "nats://SECRET@one:4222,SECRET@two:4222",
            "nats://u:a,SECRET@h:4222",
            "nats://u:a@SECRET@h:4222",
            "http://h/v1?SECRET",
            "http://h/v1?key=a://SECRET",
            "u:SECRET://x@h",
        ] {
            let shown = redacted_url(url);
            assert!(!shown.contains("SECRET"), "{url} is shown as {shown}");
        }
    }
}
