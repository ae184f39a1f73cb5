#include "cli/doctor/loader_probe.h"

#include <dlfcn.h>

#include <algorithm>

#include "cli/ask_child.h"

namespace cuslice::cli::doctor {
namespace {

constexpr std::string_view kThere = "libcuslice.so is there\n", kElsewhere = "libcuslice.so is not there\n";

}  // namespace

LoaderAnswer ask_loader(const Installation& installation, const Environment& environment) {
    constexpr std::chrono::seconds kPatience{20};
    const Answer answer = ask_child(installation, environment, {kAskLoader, "preload"}, kPatience, true);
    if (!answer.failure.empty()) return {false, answer.failure};
    std::string words = answer.text;
    const bool there = words.ends_with(kThere);
    for (const std::string_view end : {kThere, kElsewhere})
        if (words.ends_with(end)) words.resize(words.size() - end.size());
    while (!words.empty() && words.back() == '\n') words.pop_back();
    std::replace(words.begin(), words.end(), '\n', ' ');
    return {there, words};
}

std::string answer_of_loader() {
    return std::string(::dlsym(RTLD_DEFAULT, "cuslice_marker") != nullptr ? kThere : kElsewhere);
}

}  // namespace cuslice::cli::doctor
