// For whom the folder of ledgers is made, and what files in it are called.
#include "policy/ledger/folder.h"

#include <errno.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <string>

#include "policy/ledger/layout.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"

using namespace cuslice::ledger;

TEST_CASE("the usual folder is everybody's, and one that somebody names is that user's") {
    CHECK(folder_mode("/dev/shm/cuslice") == 01777);
    CHECK(folder_mode("/dev/shm/cuslice/..") == 0700);
    CHECK(folder_mode("/etc/systemd/system/ssh.service.d") == 0700);
}

TEST_CASE("a ledger's name has its user, its GPU and its version, and comes back as it was") {
    const std::string end = "." + std::to_string(kVersion) + ".ledger";
    const auto numbered = [](const std::string& number) {
        return "1000-G." + std::to_string(kVersion) + "-" + number + ".ledger";
    };
    char path[kPathBytes];
    REQUIRE(ledger_path("/dev/shm/x", 1000, "GPU-5f", path));
    CHECK(path == "/dev/shm/x/1000-GPU-5f" + end);
    unsigned user = 0;
    char uuid[64] = {};
    REQUIRE(parse_ledger_name(strrchr(path, '/') + 1, &user, uuid));
    CHECK(user == 1000);
    CHECK(std::string(uuid) == "GPU-5f");
    unsigned number = 7;
    CHECK(parse_ledger_name(strrchr(path, '/') + 1, &user, uuid, &number));
    CHECK(number == 0);
    REQUIRE(ledger_path("/dev/shm/x", 1000, "GPU-5f", path, kMaxNames - 1));
    CHECK(std::string(path) ==
          "/dev/shm/x/1000-GPU-5f." + std::to_string(kVersion) + "-" + std::to_string(kMaxNames - 1) + ".ledger");
    CHECK(parse_ledger_name(strrchr(path, '/') + 1, &user, uuid, &number));
    CHECK(number == kMaxNames - 1);
    CHECK(std::string(uuid) == "GPU-5f");
    CHECK(parse_ledger_name(("0-G" + end).c_str(), &user, uuid));
    CHECK(parse_ledger_name(("4294967295-" + std::string(63, 'G') + end).c_str(), &user, uuid));
    CHECK(user == 4294967295u);
    CHECK(std::string(uuid) == std::string(63, 'G'));
    for (const std::string& wrong : {std::string(),
                                     end,
                                     "-G" + end,
                                     "1000" + end,
                                     "1000-" + end,
                                     "1000G" + end,
                                     " 1000-G" + end,
                                     "+1000-G" + end,
                                     "01000-G" + end,
                                     "4294967296-G" + end,
                                     "1000-" + std::string(64, 'G') + end,
                                     std::string("1000-G.ledger"),
                                     "1000-G." + std::to_string(kVersion + 1) + ".ledger",
                                     "1000-G" + end + ".7-1f",
                                     "x-G" + end,
                                     numbered("0"),
                                     numbered("01"),
                                     numbered(""),
                                     numbered("x"),
                                     numbered(std::to_string(kMaxNames)),
                                     numbered("1-1")}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_ledger_name(wrong.c_str(), &user, uuid));
    }
    CHECK_FALSE(ledger_path(std::string(kPathBytes, 'f').c_str(), 1, "G", path));
}

TEST_CASE("a folder is made where there is none, and it is said where there can't be one") {
    const cuslice::tests::LedgerFolder folder;
    const std::string inner = folder.path + "/inner";
    LedgerError why;
    CHECK(make_folder(inner.c_str(), &why));
    CHECK(make_folder(inner.c_str(), nullptr));
    CHECK_FALSE(make_folder((folder.path + "/no/such").c_str(), &why));
    CHECK(why.no_place);  // another folder may do
    CHECK(std::string(why.text) == "can't make the folder " + folder.path + "/no/such: No such file or directory");
    LedgerError file;
    std::ofstream(folder.path + "/file") << "x";
    CHECK_FALSE(make_folder((folder.path + "/file").c_str(), &file));
    CHECK_FALSE(file.no_place);
    CHECK(std::string(file.text) == "can't use " + folder.path + "/file: Not a directory");
    REQUIRE(chmod(inner.c_str(), 0777) == 0);
    CHECK_FALSE(make_folder(inner.c_str(), nullptr));
    REQUIRE(chmod(inner.c_str(), 01777) == 0);
    CHECK(make_folder(inner.c_str(), nullptr));
}

TEST_CASE("only where there is no room, or nobody may write, another folder may have some") {
    for (const int error : {ENOSPC, EDQUOT, EROFS}) CHECK(means_no_room(error));
    for (const int error : {0, EACCES, EPERM, ENOENT, EMFILE, ENOMEM}) CHECK_FALSE(means_no_room(error));
}
