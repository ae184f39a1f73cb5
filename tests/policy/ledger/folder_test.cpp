// For whom the folder of ledgers is made.
#include "policy/ledger/folder.h"
#include "tests/catch.h"

TEST_CASE("the usual folder is everybody's, and one that somebody names is that user's") {
    CHECK(cuslice::ledger::folder_mode("/dev/shm/cuslice") == 01777);
    CHECK(cuslice::ledger::folder_mode("/dev/shm/cuslice/..") == 0700);
    CHECK(cuslice::ledger::folder_mode("/etc/systemd/system/ssh.service.d") == 0700);
}
