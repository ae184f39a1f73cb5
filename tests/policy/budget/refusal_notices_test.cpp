#include "policy/budget/refusal_notices.h"

#include "tests/catch.h"

namespace cuslice {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kPause = RefusalNotices::kPause;

TEST_CASE("the first refusal is shown, and the same again after a pause, with how many were not") {
    RefusalNotices notices;
    const RefusalNotices::Refused one{1, 64};
    CHECK(notices.shows(one, kSecond));
    CHECK(notices.take_hidden() == 0);
    for (unsigned i = 0; i < 5; i++) CHECK_FALSE(notices.shows(one, kSecond + i));
    CHECK_FALSE(notices.shows(one, kSecond + kPause - 1));
    CHECK(notices.shows(one, kSecond + kPause));
    CHECK(notices.take_hidden() == 6);
    CHECK(notices.take_hidden() == 0);
}

TEST_CASE("refusals that differ are shown at once, as long as they are few") {
    RefusalNotices notices;
    std::uint64_t shown = 0;
    for (std::uint64_t i = 0; i < 1000; i++) shown += notices.shows({1, i}, kSecond + i);
    CHECK(shown == RefusalNotices::kAtOnce);
    CHECK(notices.take_hidden() == 1000 - shown);
    // From then on one in a pause, for as long as it goes on.
    shown = 0;
    for (std::uint64_t i = 1; i <= 100; i++) shown += notices.shows({1, i}, kSecond + i * kPause / 10);
    CHECK(shown == 10);
    // Quiet for long enough: as at the beginning.
    shown = 0;
    for (std::uint64_t i = 0; i < 100; i++) shown += notices.shows({i % 2, 7}, 100 * kPause + i);
    CHECK(shown == RefusalNotices::kAtOnce);
}

TEST_CASE("what ended the program is what it was refused a moment before and nobody was shown") {
    RefusalNotices notices;
    RefusalNotices::Refused last;
    CHECK_FALSE(notices.ended_by(kSecond, &last));
    CHECK(notices.shows({1, 64}, kSecond));
    CHECK_FALSE(notices.ended_by(kSecond + 1, &last));  // it was shown
    CHECK_FALSE(notices.shows({1, 64}, kSecond + 2));
    CHECK_FALSE(notices.ended_by(kSecond + 3, &last));  // so was this
    for (std::uint64_t i = 1; i < RefusalNotices::kAtOnce; i++) CHECK(notices.shows({1, i}, kSecond + 3));
    CHECK_FALSE(notices.shows({2, 48}, kSecond + 4));
    CHECK(notices.ended_by(kSecond + 5, &last));
    CHECK(last.what == 2);
    CHECK(last.bytes == 48);
    CHECK_FALSE(notices.ended_by(kSecond + 4 + kPause, &last));  // it went on for long
}

}  // namespace
}  // namespace cuslice
