//! Lists over more than one page.

/// Most the server gives at once.
const PAGE: u32 = 500;

/// Asks for pages, given a size and a token, until `limit` items are there or the last page was seen. The second
/// value says whether there are more.
///
/// # Errors
/// Those of a page.
pub async fn up_to<T, F, Fut>(limit: u32, mut page: F) -> anyhow::Result<(Vec<T>, bool)>
where
    F: FnMut(u32, String) -> Fut,
    Fut: Future<Output = Result<(Vec<T>, String), tonic::Status>>,
{
    let (mut items, mut token) = (Vec::new(), String::new());
    loop {
        let left = limit.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
        if left == 0 {
            return Ok((items, !token.is_empty()));
        }
        let (found, next) = page(left.min(PAGE), token).await?;
        items.extend(found);
        if next.is_empty() {
            return Ok((items, false));
        }
        token = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,200 numbers.
    async fn numbers(size: u32, token: String) -> Result<(Vec<u32>, String), tonic::Status> {
        let from: u32 = token.parse().unwrap_or(0);
        let to = (from + size).min(1_200);
        let next = if to < 1_200 { to.to_string() } else { String::new() };
        Ok(((from..to).collect(), next))
    }

    #[tokio::test]
    async fn pages_are_joined_up_to_the_limit() {
        assert_eq!(
            up_to(700, numbers).await.unwrap(),
            ((0..700).collect::<Vec<_>>(), true)
        );
        assert_eq!(
            up_to(1_200, numbers).await.unwrap(),
            ((0..1_200).collect::<Vec<_>>(), false)
        );
        assert_eq!(
            up_to(u32::MAX, numbers).await.unwrap(),
            ((0..1_200).collect::<Vec<_>>(), false)
        );
    }
}
