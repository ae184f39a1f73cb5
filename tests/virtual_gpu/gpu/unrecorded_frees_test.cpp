// SPDX-License-Identifier: Apache-2.0
// Frees without a record: on which GPUs they are watched for.
#include "virtual_gpu/gpu/unrecorded_frees.h"

#include "tests/catch.h"

using namespace cuslice;

TEST_CASE("frees without a record are watched for on the GPU that has such memory, and known for all at once") {
    UnrecordedFrees one, other;
    CHECK_FALSE(one.watched());
    one.watch();
    CHECK(one.watched());
    CHECK_FALSE(other.watched());
    CHECK(UnrecordedFrees::any_watched());
}
