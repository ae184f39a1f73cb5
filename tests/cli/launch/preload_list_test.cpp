// SPDX-License-Identifier: Apache-2.0
// The text of /etc/ld.so.preload: one path is put in and taken out, and whatever else stands there stays.
#include "cli/launch/preload_list.h"

#include "tests/catch.h"

namespace cuslice::cli {

TEST_CASE("a path in the list of preloaded libraries is found between others, and not in a comment") {
    CHECK(lists("/a.so\n", "/a.so"));
    CHECK(lists("/b.so:/a.so /c.so", "/a.so"));
    CHECK(lists("\t/a.so # why\n", "/a.so"));
    CHECK_FALSE(lists("# /a.so\n/b.so #/a.so\n/a.so.1\n/lib/a.so", "/a.so"));
    CHECK_FALSE(lists("", "/a.so"));
}

TEST_CASE("a path is put at the end of the list, once, and taken out again") {
    for (const std::string text : {"", "/b.so\n", "# ours\n/b.so /c.so\n\n"}) {
        const std::string with = with_path(text, "/a.so");
        CHECK(with == text + "/a.so\n");
        CHECK(with_path(with, "/a.so") == with);
        CHECK(without_path(with, "/a.so") == text);
    }
    CHECK(with_path("/b.so", "/a.so") == "/b.so\n/a.so\n");
    CHECK(without_path("/b.so:/a.so /c.so # three\n/a.so\n/a.so # why\n", "/a.so") == "/b.so /c.so # three\n# why\n");
    CHECK(without_path("/b.so", "/a.so") == "/b.so\n");
}

}  // namespace cuslice::cli
