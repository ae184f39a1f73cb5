// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/chosen_runtime.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <span>
#include <string_view>

#include "elf/loader_cache.h"
#include "elf/object.h"
#include "shim/redirect/runtime_places.h"
#include "virtual_gpu/driver/search_path.h"

namespace cuslice {

namespace {

// The folders of LD_LIBRARY_PATH, as the process began with it.
class LibraryPath {
  public:
    LibraryPath() {
        const char* const value = std::getenv("LD_LIBRARY_PATH");
        text_.assign(std::string_view(value ? value : ""));
        std::string_view rest = text_;
        while (!rest.empty() && count_ < kMost) {
            const size_t end = rest.find_first_of(":;");
            add(slice(rest, 0, end));
            rest = end == rest.npos ? std::string_view() : slice(rest, end + 1);
        }
    }
    std::span<const Dl_serpath> folders() const { return {folders_, count_}; }

  private:
    // Each ends where its separator was. A relative one may lead elsewhere later.
    void add(std::string_view folder) {
        if (!starts_with(folder, "/"))
            return;
        char* const begin = const_cast<char*>(folder.data());
        begin[folder.size()] = '\0';
        folders_[count_++] = {begin, 0};
    }

    static constexpr size_t kMost = 64;
    FixedText<8192> text_;
    Dl_serpath folders_[kMost]{};
    size_t count_ = 0;
};

}  // namespace

bool ChosenRuntime::Judge::takes(const char* path) const {
    return path[0] == '/' && file.read(path, major) && plan.make(symbols, file.functions(), why);
}

bool ChosenRuntime::choose(int major, const SymbolTable& symbols, const link_map& library, RedirectPlan& plan,
                           Reason& why) {
    const Judge judge{file_, major, symbols, plan, why};
    const char* const named = std::getenv("CUSLICE_RUNTIME");
    if (named && *named)
        return take_named(named, judge);
    const bool found =
        take_loaded(library, judge) || take_of_loader(judge) ||
        any_runtime_elsewhere(major, library.l_name, [&](const char* path) { return judge.takes(path); });
    if (!found && why.empty())
        explain_missing_runtime(major, why);
    return found;
}

bool ChosenRuntime::take_named(const char* path, const Judge& judge) {
    const bool taken = judge.takes(path);
    if (!taken && judge.why.empty())
        judge.why.assign("CUSLICE_RUNTIME: ", std::string_view(path), ": can't be read, or is no ",
                         soname_of_runtime(judge.major), ", which the library's own would be");
    return taken;
}

// The loader's list is in the order in which objects were loaded, and its lock is held.
bool ChosenRuntime::take_loaded(const link_map& library, const Judge& judge) {
    const FixedText<32> wanted = soname_of_runtime(judge.major);
    const link_map* object = &library;
    while (object->l_prev)
        object = object->l_prev;
    for (; object; object = object->l_next) {
        const char* const soname = elf_object_at(object->l_addr, object->l_ld).soname;
        if (soname && wanted.view() == soname && judge.takes(object->l_name))
            return true;
    }
    return false;
}

bool ChosenRuntime::take_of_loader(const Judge& judge) {
    static LibraryPath path;
    const FixedText<32> wanted = soname_of_runtime(judge.major);
    const auto visit = [](const char* file, const char*, void* own) {
        return static_cast<const Judge*>(own)->takes(file);
    };
    return visit_candidates(path.folders(), 0, ELF_LOADER_CACHE, wanted.c_str(), visit, const_cast<Judge*>(&judge));
}

}  // namespace cuslice
