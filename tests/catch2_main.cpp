// SPDX-License-Identifier: Apache-2.0
// The main function of every test program, under Catch2 2 and 3.
//
//   PROGRAM [Catch2's words]   runs cases; ends with 0, with 1 if one failed or none was found, and
//                              with 77 if none failed but one said skip()
//   PROGRAM --ctest-cases      lists the cases that are not hidden: a name, a tab and its tags
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>
#define CATCH_CONFIG_RUNNER
#include "tests/catch.h"
#include "tests/skip.h"

namespace {

constexpr int kFailed = 1, kSkipped = 77;

// In memory that forked children share, as some cases find out in a child that they can't be tried.
std::atomic<bool>* skipped = nullptr;

unsigned started = 0;

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
std::string text_of(const Catch::Tag& tag) { return static_cast<std::string>(tag.original); }
std::vector<Catch::TestCaseInfo*> cases() { return Catch::getRegistryHub().getTestCaseRegistry().getAllInfos(); }
#else
using Listener = Catch::TestEventListenerBase;
std::string text_of(const std::string& tag) { return tag; }
std::vector<const Catch::TestCaseInfo*> cases() {
    std::vector<const Catch::TestCaseInfo*> all;
    for (const Catch::TestCase& one : Catch::getRegistryHub().getTestCaseRegistry().getAllTests())
        all.push_back(&one);
    return all;
}
#endif

class Counter : public Listener {
  public:
    using Listener::Listener;
    void testCaseStarting(const Catch::TestCaseInfo& /*info*/) override { started++; }
};
CATCH_REGISTER_LISTENER(Counter)

int list_cases() {
    for (const auto* one : cases()) {
        if (one->isHidden())
            continue;
        std::string tags;
        for (const auto& tag : one->tags)
            tags += "[" + text_of(tag) + "]";
        std::printf("%s\t%s\n", one->name.c_str(), tags.c_str());
    }
    return 0;
}

}  // namespace

void cuslice::tests::skip(const std::string& why) {
    std::printf("  SKIPPED: %s\n", why.c_str());
    std::fflush(stdout);
    *skipped = true;
}

int main(int argc, char* argv[]) {
    void* page = mmap(nullptr, sizeof *skipped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return kFailed;
    skipped = new (page) std::atomic<bool>(false);

    Catch::Session session;
    if (argc == 2 && std::strcmp(argv[1], "--ctest-cases") == 0)
        return list_cases();
    if (session.applyCommandLine(argc, argv) != 0)
        return kFailed;
    // Catch2 gives the number of failures, which might be 77; and version 2 none where no case has
    // the name that was asked for.
    const int failed = session.run();
    if (failed != 0 || (started == 0 && !session.configData().testsOrTags.empty()))
        return kFailed;
    return *skipped ? kSkipped : 0;
}
