// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/fake_check.h"

#include <dlfcn.h>

#include <sstream>

#include "cli/gpus/ask_child.h"
#include "cli/gpus/open_library.h"
#include "cli/launch/program_environment.h"

namespace cuslice::cli {
namespace {

// The first letter of an answer; the rest is the driver's message.
constexpr char kGood = 'y';
constexpr char kRefused = 'n';
constexpr char kFailed = 'f';

/// A function that the fake driver exports beside CUDA's. Returns 0 if the driver would take `spec`, with its GPUs'
/// contexts in `message`; otherwise `message` says why not.
using Check = int(const char* spec, char* message, size_t size);

}  // namespace

bool check_fake(const Entry& fake, const Installation& installation, Environment environment, ContextSizes& contexts,
                ConfigError& error) {
    const std::string driver = installation.fake_driver();
    remove_preload(environment);
    const Answer answer = ask_child(installation, std::move(environment), {kAskFake, driver, std::string(fake.value)},
                                    std::chrono::minutes(1));
    if (answer.failure.empty() && answer.text.starts_with(kGood)) {
        std::istringstream lines(answer.text.substr(1));
        uint64_t bytes = 0;
        for (std::string uuid; lines >> uuid >> bytes;)
            contexts[uuid] = bytes;
        return true;
    }
    if (answer.failure.empty() && answer.text.starts_with(kRefused)) {
        // The file is what the setting names, and is shown as its value.
        const std::string why = answer.text.substr(1), file = std::string(fake.value) + ": ";
        return refuse_entry(fake, why.starts_with(file) ? why.substr(file.size()) : why, error);
    }
    const std::string why = answer.text.starts_with(kFailed) ? answer.text.substr(1) : answer.failure;
    return error.set(driver, "the fake GPU cannot be opened: " + why);
}

std::string ask_fake_driver(const std::string& driver_file, const std::string& spec) {
    void* const driver = open_library(driver_file);
    void* const symbol = driver == nullptr ? nullptr : ::dlsym(driver, "cuslice_fake_check");
    if (symbol == nullptr) {
        const char* const why = ::dlerror();
        return std::string(1, kFailed).append(why == nullptr ? "" : why);
    }
    char message[8192] = {};
    const bool good = reinterpret_cast<Check*>(symbol)(spec.c_str(), message, sizeof message) == 0;
    return std::string(1, good ? kGood : kRefused).append(message);
}

}  // namespace cuslice::cli
