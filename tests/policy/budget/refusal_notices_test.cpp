// SPDX-License-Identifier: Apache-2.0
#include "policy/budget/refusal_notices.h"

#include "tests/catch.h"

namespace cuslice {
namespace {

constexpr uint64_t kSecond = 1'000'000'000, kPause = RefusalNotices::kPause;

// As in a program whose `log` is `warn`.
bool shows(RefusalNotices& notices, const RefusalNotices::Refused& refused, uint64_t now) {
    if (notices.judge(refused, now) == Notice::line)
        return true;
    notices.hide(refused, now);
    return false;
}

TEST_CASE("the first refusal is shown, and the same again after a pause, with how many were not") {
    RefusalNotices notices;
    const RefusalNotices::Refused one{1, 64};
    CHECK(shows(notices, one, kSecond));
    CHECK(notices.take_hidden() == 0);
    for (unsigned i = 0; i < 5; i++)
        CHECK_FALSE(shows(notices, one, kSecond + i));
    CHECK_FALSE(shows(notices, one, kSecond + kPause - 1));
    CHECK(shows(notices, one, kSecond + kPause));
    CHECK(notices.take_hidden() == 6);
    CHECK(notices.take_hidden() == 0);
}

TEST_CASE("refusals that differ are shown at once, as long as they are few") {
    RefusalNotices notices;
    uint64_t shown = 0;
    for (uint64_t i = 0; i < 1000; i++)
        shown += shows(notices, {1, i}, kSecond + i);
    CHECK(shown == RefusalNotices::kAtOnce);
    CHECK(notices.take_hidden() == 1000 - shown);
    // From then on one in a pause, for as long as it goes on.
    shown = 0;
    for (uint64_t i = 1; i <= 100; i++)
        shown += shows(notices, {1, i}, kSecond + i * kPause / 10);
    CHECK(shown == 10);
    // Quiet for long enough: as at the beginning.
    shown = 0;
    for (uint64_t i = 0; i < 100; i++)
        shown += shows(notices, {i % 2, 7}, 100 * kPause + i);
    CHECK(shown == RefusalNotices::kAtOnce);
}

TEST_CASE("ever smaller requests of one function are one line, and details") {
    RefusalNotices notices;
    CHECK(notices.judge({1, 64}, kSecond) == Notice::line);
    for (uint64_t bytes = 32; bytes; bytes /= 2)
        CHECK(notices.judge({1, bytes}, kSecond) == Notice::detail);
    CHECK(notices.judge({1, 1}, kSecond) == Notice::none);
    // A larger one is news, and so is a smaller one of another function.
    CHECK(notices.judge({1, 96}, kSecond) == Notice::line);
    CHECK(notices.judge({1, 80}, kSecond) == Notice::detail);
    CHECK(notices.judge({2, 48}, kSecond) == Notice::line);
}

TEST_CASE("a smaller request has a line again when memory has been given back, or after a pause") {
    constexpr uint64_t kUsed = 1000;
    const auto second_notice = [](const RefusalNotices::Refused& second, uint64_t now) {
        RefusalNotices notices;
        CHECK(notices.judge({1, 64, kUsed, 5}, kSecond) == Notice::line);
        return notices.judge(second, now);
    };
    CHECK(second_notice({1, 32, kUsed, 5}, kSecond + 1) == Notice::detail);
    // A program that fills the GPU gets some of what it asks for.
    CHECK(second_notice({1, 32, kUsed + 32, 5}, kSecond + 1) == Notice::detail);
    CHECK(second_notice({1, 32, kUsed - 32, 5}, kSecond + 1) == Notice::line);
    CHECK(second_notice({1, 32, kUsed, 6}, kSecond + 1) == Notice::line);
    CHECK(second_notice({1, 32, kUsed, 5}, kSecond + kPause) == Notice::line);
}

TEST_CASE("what ended the program is what it was refused a moment before and nobody was shown") {
    RefusalNotices notices;
    RefusalNotices::Refused last;
    CHECK_FALSE(notices.ended_by(kSecond, &last));
    CHECK(shows(notices, {1, 64}, kSecond));
    CHECK_FALSE(notices.ended_by(kSecond + 1, &last));  // it was shown
    CHECK_FALSE(shows(notices, {1, 64}, kSecond + 2));
    CHECK_FALSE(notices.ended_by(kSecond + 3, &last));  // so was this
    for (uint64_t i = 1; i < RefusalNotices::kAtOnce; i++)
        CHECK(shows(notices, {1, 64 + i}, kSecond + 3));
    CHECK_FALSE(shows(notices, {2, 48}, kSecond + 4));
    CHECK(notices.ended_by(kSecond + 5, &last));
    CHECK(last.what == 2);
    CHECK(last.bytes == 48);
    CHECK_FALSE(notices.ended_by(kSecond + 4 + kPause, &last));  // it went on for long
}

}  // namespace
}  // namespace cuslice
