//! Time for people: RFC 3339 from milliseconds. Nothing decides by it.

/// Prints a moment, in milliseconds since 1970, as `2026-11-30T20:15:00.123Z`.
pub fn rfc3339(wall_ms: u64) -> String {
    let (days, ms_of_day) = (wall_ms / 86_400_000, wall_ms % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (ms_of_day / 3_600_000, ms_of_day / 60_000 % 60, ms_of_day / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms_of_day % 1_000)
}

/// Days since 1970-01-01 as year, month, day: counts in eras of 400 years that begin in March, so that the leap
/// day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_print_as_calendars_have_them() {
        for (wall_ms, want) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_796_083_199_999, "2026-11-30T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(wall_ms), want);
        }
    }
}
