//! Real channel data.

use colloquy_ingress::channel::Received;
use colloquy_ingress::channel::telegram::normalise;
use colloquy_tests::shared::folder;

#[test]
fn every_real_telegram_update_is_understood() {
    let Some(folder) = folder("data/channels/telegram-nutgram") else {
        return;
    };
    let (mut messages, mut ignored) = (0, 0);
    for item in std::fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        let body = std::fs::read(&path).unwrap();
        match normalise(&body).unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
            Received::Message(inbound) => {
                assert!(!inbound.chat.is_empty() && !inbound.parts.is_empty() && !inbound.dedupe.is_empty());
                messages += 1;
            }
            Received::Ignored(_) => ignored += 1,
            Received::Unusable(error) => panic!("{}: {error}", path.display()),
        }
    }
    println!("{messages} messages, {ignored} updates without one");
    assert!(messages >= 15 && ignored >= 15, "{messages} {ignored}");
}
