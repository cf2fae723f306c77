//! What an image costs, by the providers' published rules.
//!
//! To add a rule: a variant with its link, its arm in [`ImageRule::tokens`], and the models that follow it in `models`.

/// The size that an image of unknown size is counted with: the usual photograph or screenshot.
pub const UNKNOWN_SIZE: (u32, u32) = (1_536, 1_024);

/// How closely the model looks; the product sends images without saying, which is `High`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    Low,
    #[default]
    High,
}

/// A provider's rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageRule {
    /// ⌈width / 28⌉ × ⌈height / 28⌉, after scaling down to the longest edge and the most tokens; earlier written as
    /// width × height / 750 (<https://platform.claude.com/docs/en/build-with-claude/vision>).
    Claude { edge: u32, most: u32 },
    /// Scaled to fit 2,048 square, then to a short side of at most 768; a base and so many for each tile of 512. Low detail
    /// costs the base (<https://platform.openai.com/docs/guides/images-vision>).
    OpenaiTiles { base: u32, tile: u32 },
    /// Patches of 32, scaled down to at most so many, times a factor in percent; low detail costs the same (same page).
    OpenaiPatches { most: u32, percent: u32 },
    /// 258 up to 384 square; else 258 for each tile of min(width, height) / 1.5
    /// (<https://ai.google.dev/gemini-api/docs/image-understanding>).
    GeminiTiles,
    /// The same for each image, 258 for low detail (<https://ai.google.dev/gemini-api/docs/media-resolution>).
    GeminiFixed { each: u32 },
    /// Patches after scaling to the longest edge, one token more for each row
    /// (<https://mistralai.github.io/mistral-common/usage/images>).
    Mistral { edge: u32, patch: u32 },
}

impl ImageRule {
    pub const CLAUDE: Self = Self::Claude {
        edge: 1_568,
        most: 1_568,
    };
    /// From Opus 4.7.
    pub const CLAUDE_LARGE: Self = Self::Claude {
        edge: 2_576,
        most: 4_784,
    };
    /// GPT-4o, GPT-4.1 and GPT-4 Turbo.
    pub const OPENAI_TILES: Self = Self::OpenaiTiles { base: 85, tile: 170 };
    /// Gemini 3 and later, by default.
    pub const GEMINI: Self = Self::GeminiFixed { each: 1_120 };
    pub const PIXTRAL: Self = Self::Mistral {
        edge: 1_024,
        patch: 16,
    };
    /// Since Mistral Small 3.1: patches of 14, four merged into one token.
    pub const MISTRAL: Self = Self::Mistral {
        edge: 1_540,
        patch: 28,
    };

    /// The rule of an OpenAI model, by its name without prefixes. The first stem that fits, so longer ones come first.
    pub(super) fn of_openai(name: &str) -> Self {
        const TILES: &[(&str, u32, u32)] = &[
            ("gpt-4o-mini", 2_833, 5_667),
            ("o1", 75, 150),
            ("o3", 75, 150),
            ("gpt-5.1", 70, 140),
        ];
        const PATCHES: &[(&str, u32, u32)] = &[
            ("gpt-4.1-mini", 1_536, 162),
            ("gpt-4.1-nano", 1_536, 246),
            ("gpt-5-mini", 1_536, 162),
            ("gpt-5-nano", 1_536, 246),
            ("gpt-5.4-mini", 1_536, 162),
            ("gpt-5.4-nano", 1_536, 246),
            ("gpt-5.2", 1_536, 120),
            ("gpt-5.3", 1_536, 120),
            ("o4-mini", 1_536, 172),
            ("codex-mini", 1_536, 172),
            ("gpt-5.", 2_500, 120),
            ("gpt-6", 2_500, 120),
        ];
        let tiles = TILES.iter().find(|(stem, ..)| name.starts_with(stem));
        let patches = || PATCHES.iter().find(|(stem, ..)| name.starts_with(stem));
        if let Some(&(_, base, tile)) = tiles {
            Self::OpenaiTiles { base, tile }
        } else if let Some(&(_, most, percent)) = patches() {
            Self::OpenaiPatches { most, percent }
        } else if name.starts_with("gpt-5") {
            Self::OpenaiTiles { base: 70, tile: 140 }
        } else {
            Self::OPENAI_TILES
        }
    }

    /// Tokens of an image of so many pixels in width and height; of [`UNKNOWN_SIZE`] where that is not known.
    #[must_use]
    pub fn tokens(self, size: Option<(u32, u32)>, detail: Detail) -> u32 {
        let (width, height) = size.unwrap_or(UNKNOWN_SIZE);
        let size = (width.clamp(1, 1 << 16), height.clamp(1, 1 << 16));
        match (self, detail) {
            (Self::OpenaiTiles { base, .. }, Detail::Low) => base,
            (Self::GeminiTiles | Self::GeminiFixed { .. }, Detail::Low) => GEMINI_TILE,
            (Self::Claude { edge, most }, _) => claude(size, edge, most),
            (Self::OpenaiTiles { base, tile }, Detail::High) => base + tile * tiles(size),
            (Self::OpenaiPatches { most, percent }, _) => (patches(size, most) * percent).div_ceil(100),
            (Self::GeminiTiles, Detail::High) => gemini(size),
            (Self::GeminiFixed { each }, Detail::High) => each,
            (Self::Mistral { edge, patch }, _) => {
                let (width, height) = within(size, edge, edge);
                (width.div_ceil(patch) + 1) * height.div_ceil(patch)
            }
        }
    }

    /// Tokens of a page of a PDF, text and picture: Anthropic says 1,500 to 3,000 of text
    /// (<https://platform.claude.com/docs/en/build-with-claude/pdf-support>), Google 258, since Gemini 3 560.
    pub(super) fn page(self) -> u32 {
        match self {
            Self::Claude { .. } => 3_000,
            Self::GeminiTiles => GEMINI_TILE,
            Self::GeminiFixed { .. } => 560,
            _ => 1_500,
        }
    }

    /// Tokens of a second of sound: 32 for Gemini (<https://ai.google.dev/gemini-api/docs/audio>), 10 elsewhere
    /// (<https://platform.openai.com/docs/guides/realtime-costs>).
    pub(super) fn second(self) -> u32 {
        match self {
            Self::GeminiTiles | Self::GeminiFixed { .. } => 32,
            _ => 10,
        }
    }
}

const GEMINI_TILE: u32 = 258;

/// Scaled down, never up, to at most so many pixels.
fn within((width, height): (u32, u32), most_width: u32, most_height: u32) -> (u32, u32) {
    let scale = (f64::from(most_width) / f64::from(width))
        .min(f64::from(most_height) / f64::from(height))
        .min(1.0);
    (scaled(width, scale), scaled(height, scale))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a side of at most 65,536 times a factor between 0 and 1"
)]
fn scaled(side: u32, scale: f64) -> u32 {
    ((f64::from(side) * scale).round() as u32).max(1)
}

fn claude(size: (u32, u32), edge: u32, most: u32) -> u32 {
    let cost = |(width, height): (u32, u32)| width.div_ceil(28) * height.div_ceil(28);
    let fits = within(size, edge, edge);
    if cost(fits) <= most {
        return cost(fits);
    }
    // The largest width that keeps to the most tokens; the cost only grows with the width.
    let (mut low, mut high) = (1, fits.0);
    while high - low > 1 {
        let middle = low.midpoint(high);
        let fits_most = cost((middle, side_of(middle, fits))) <= most;
        *(if fits_most { &mut low } else { &mut high }) = middle;
    }
    cost((low, side_of(low, fits)))
}

/// The height to a width, in the proportion of a size.
fn side_of(width: u32, (of_width, of_height): (u32, u32)) -> u32 {
    scaled(of_height, f64::from(width) / f64::from(of_width))
}

fn tiles(size: (u32, u32)) -> u32 {
    let (width, height) = within(size, 2_048, 2_048);
    let scale = (768.0 / f64::from(width.min(height))).min(1.0);
    scaled(width, scale).div_ceil(512) * scaled(height, scale).div_ceil(512)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 65,536 patches a side"
)]
fn patches((width, height): (u32, u32), most: u32) -> u32 {
    let all = width.div_ceil(32) * height.div_ceil(32);
    if all <= most {
        return all;
    }
    let shrink = (f64::from(most) * 1_024.0 / (f64::from(width) * f64::from(height))).sqrt();
    let (wide, high) = (
        f64::from(width) * shrink / 32.0,
        f64::from(height) * shrink / 32.0,
    );
    let whole = (wide.floor() / wide).min(high.floor() / high);
    let side = |patches: f64| (patches * whole - 1e-6).ceil().max(1.0) as u32;
    (side(wide) * side(high)).min(most)
}

fn gemini((width, height): (u32, u32)) -> u32 {
    if width <= 384 && height <= 384 {
        return GEMINI_TILE;
    }
    let unit = (width.min(height) * 2 / 3).clamp(256, 768);
    GEMINI_TILE * width.div_ceil(unit) * height.div_ceil(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn high(rule: ImageRule, width: u32, height: u32) -> u32 {
        rule.tokens(Some((width, height)), Detail::High)
    }

    #[test]
    fn anthropics_examples() {
        assert_eq!(high(ImageRule::CLAUDE, 200, 200), 64);
        assert_eq!(high(ImageRule::CLAUDE, 1_000, 1_000), 1_296);
        assert_eq!(high(ImageRule::CLAUDE, 1_092, 1_092), 1_521);
        for (width, height) in [(3_000, 2_000), (1_568, 1_568), (8_000, 8_000), (1_920, 1_080)] {
            let tokens = high(ImageRule::CLAUDE, width, height);
            assert!((1_500..=1_568).contains(&tokens), "{width} × {height}: {tokens}");
        }
        assert_eq!(high(ImageRule::CLAUDE, 8_000, 100), 56, "the longest edge alone");
        assert_eq!(high(ImageRule::CLAUDE_LARGE, 1_920, 1_080), 2_691);
    }

    #[test]
    fn openais_examples() {
        assert_eq!(high(ImageRule::OPENAI_TILES, 1_024, 1_024), 765);
        assert_eq!(high(ImageRule::OPENAI_TILES, 2_048, 4_096), 1_105);
        assert_eq!(high(ImageRule::OPENAI_TILES, 128, 64), 255);
        assert_eq!(
            ImageRule::OPENAI_TILES.tokens(Some((4_096, 8_192)), Detail::Low),
            85
        );
        let plain = ImageRule::OpenaiPatches {
            most: 1_536,
            percent: 100,
        };
        assert_eq!(high(plain, 1_024, 1_024), 1_024);
        assert_eq!(high(plain, 1_800, 2_400), 1_452);
        assert_eq!(high(ImageRule::of_openai("gpt-4o-mini"), 128, 64), 8_500);
        assert_eq!(high(ImageRule::of_openai("o3"), 128, 64), 225);
        assert_eq!(high(ImageRule::of_openai("gpt-5-chat"), 128, 64), 210);
        assert_eq!(high(ImageRule::of_openai("gpt-4.1-mini"), 1_024, 1_024), 1_659);
    }

    #[test]
    fn googles_and_mistrals_examples() {
        assert_eq!(high(ImageRule::GeminiTiles, 384, 384), 258);
        assert_eq!(high(ImageRule::GeminiTiles, 960, 540), 6 * 258);
        assert_eq!(high(ImageRule::GEMINI, 4_000, 3_000), 1_120);
        assert_eq!(high(ImageRule::PIXTRAL, 64, 64), 20);
        assert_eq!(high(ImageRule::PIXTRAL, 2_048, 1_024), 65 * 32);
    }

    #[test]
    fn extreme_sizes_have_a_cost_too() {
        let rules = [
            ImageRule::CLAUDE,
            ImageRule::CLAUDE_LARGE,
            ImageRule::OPENAI_TILES,
            ImageRule::of_openai("gpt-5.4"),
            ImageRule::GeminiTiles,
            ImageRule::GEMINI,
            ImageRule::PIXTRAL,
            ImageRule::MISTRAL,
        ];
        for rule in rules {
            for size in [(0, 0), (1, 1), (1, 65_535), (u32::MAX, 1), (u32::MAX, u32::MAX)] {
                assert!(rule.tokens(Some(size), Detail::High) > 0, "{rule:?} {size:?}");
            }
            assert!(rule.tokens(None, Detail::High) <= 3_000, "{rule:?}");
        }
    }
}
