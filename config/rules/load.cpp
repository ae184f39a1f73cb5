// SPDX-License-Identifier: Apache-2.0
#include "config/rules/load.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "config/directory_entry.h"
#include "config/hash.h"
#include "config/rules/read.h"
#include "config/text_file.h"

namespace cuslice::rules {
namespace {

constexpr size_t kMaxFiles = 256;
constexpr size_t kMostOfAccounts = size_t{64} * 1024 * 1024;
constexpr std::string_view kContent = "rules";

using FilePath = FixedText<1024>;

// All that it takes, in pages of its own: too much for a stack.
struct Work {
    FilePath folder;
    FixedText<256> files[kMaxFiles];  // in the order of their names
    size_t file_count = 0;
    Names names;
    Rule rule;
    Identity identity;
    TextFile users, groups;
    AccountFiles accounts;
    const Identity* asked = nullptr;  // whose rule is looked for
    Visit visit = nullptr;
    void* context = nullptr;
    bool held = false;
};

class WorkSpace {
  public:
    WorkSpace() {
        void* const at = ::mmap(nullptr, sizeof(Work), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at != MAP_FAILED)
            work_ = new (at) Work;
    }
    ~WorkSpace() {
        if (work_ == nullptr)
            return;
        work_->~Work();
        ::munmap(work_, sizeof(Work));
    }
    WorkSpace(const WorkSpace&) = delete;
    WorkSpace& operator=(const WorkSpace&) = delete;

    Work* get() const { return work_; }

  private:
    Work* work_ = nullptr;
};

class Folder {
  public:
    explicit Folder(const char* path)
        : descriptor_(::open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC)), error_(errno) {}
    ~Folder() {
        if (descriptor_ >= 0)
            ::close(descriptor_);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    int descriptor() const { return descriptor_; }
    int error() const { return error_; }

  private:
    int descriptor_;
    int error_;
};

bool is_before(std::string_view a, std::string_view b) { return a < b; }

bool add_name(Work& work, std::string_view name) {
    if (work.file_count == kMaxFiles)
        return false;
    size_t at = work.file_count++;
    for (; at > 0 && is_before(name, work.files[at - 1].view()); --at)
        work.files[at] = work.files[at - 1];
    work.files[at].assign(name);
    return true;
}

bool is_rules_name(std::string_view name) {
    constexpr std::string_view kEnd = ".toml";
    return name.size() > kEnd.size() && name[0] != '.' && slice(name, name.size() - kEnd.size()) == kEnd;
}

bool list_files(Work& work, int folder, ConfigError& error) {
    alignas(DirectoryEntry) char entries[4096];
    for (;;) {
        const long count = ::syscall(SYS_getdents64, folder, entries, sizeof entries);
        if (count < 0)
            return error.set(work.folder, "cannot be read");
        if (count == 0)
            return true;
        for (long at = 0; at < count;) {
            const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
            at += entry->length;
            if (is_rules_name(entry->name) && !add_name(work, entry->name))
                return error.set(work.folder, "more than 256 files of rules");
        }
    }
}

bool apply(Settings& settings, const Rule& rule, ConfigError& error) {
    for (const Limit& limit : rule.limit_list()) {
        NewEntry entry{.key = limit.key, .ceiling = true, .rank = {Source::rule, 0}, .value = limit.value.view()};
        Reason why;
        if (!limit.gpu.empty() && !parse_gpu_selector(limit.gpu, entry.selector, why))
            return false;
        FixedText<1200> origin("rule ");
        origin.append(rule.name, " (", rule.path, ":", limit.line);
        origin.append(":", limit.column, ")");
        entry.origin = origin.view();
        if (settings.add(entry, why))
            continue;
        error.set(rule.path, limit.value, why);
        error.line = limit.line;
        error.column = limit.column;
        return false;
    }
    return true;
}

bool refuse_share(const Rule& rule, std::string_view whose, ConfigError& error) {
    Reason why("rule ");
    why.append(rule.name, " shares one slice, and ", whose);
    error.set(rule.path, why);
    error.key.assign("rule");
    error.line = rule.line;
    error.column = rule.column;
    return false;
}

// Where it can't be told whose slice it is, there would be a second one.
bool share(Settings& settings, const Rule& rule, const Identity& identity, ConfigError& error) {
    if (rule.share == Share::nobody)
        return true;
    if (identity.user_doubt != Doubt::none)
        return refuse_share(rule, "the owner of this process can't be told in a user namespace or without /proc",
                            error);
    // The ledger is the effective user's, the slice the real one's.
    if (::syscall(SYS_getuid) != ::syscall(SYS_geteuid))
        return refuse_share(rule, "this process's real user isn't its effective one (set-user-ID)", error);
    FixedText<64> account(rule.name);
    if (rule.share == Share::cgroup) {
        if (identity.cgroups_doubt != Doubt::none)
            return refuse_share(rule, "this process's cgroup can't be told in a cgroup namespace", error);
        account.append("@");  // a path is longer than the name of an account may be
        const uint64_t hash = hash_of(fitting_cgroup(rule, identity));
        for (int shift = 60; shift >= 0; shift -= 4)
            account.append("0123456789abcdef"[hash >> shift & 15]);
    }
    settings.share_rule(account);
    return true;
}

// The first that fits holds; those behind it are read all the same, so that a mistake is everybody's to see.
bool on_rule(void* context, const Rule& rule, ConfigError& error) {
    Work& work = *static_cast<Work*>(context);
    if (work.held)
        return work.visit(work.context, rule, *work.asked, nullptr, error);
    const Match found = match(rule, *work.asked, work.accounts);
    work.held = found.fits;
    return work.visit(work.context, rule, *work.asked, &found, error);
}

bool read_file(Work& work, std::string_view name, const SystemPlaces& system, OpenToml open_toml, ConfigError& error) {
    FilePath path;
    path.append(work.folder, "/", name);
    Reason why;
    if (path.cut())
        return error.set(path, "its path is too long");
    TextFile file;
    FileRights rights;
    if (const int code = file.open(path.c_str()); code != 0) {
        explain_errno(code, why);
        return error.set(path, why);
    }
    if (!file.look(rights, why) || !only_root_can_change(rights, system, kContent, why) ||
        !file.read(kMostOfSettings, why))
        return error.set(path, why);
    cuslice_toml_parse_function* const parse = open_toml(why);
    if (parse == nullptr)
        return error.set(path, why);
    return read_rules(file.view(), path.view(), parse, work.names, work.rule, on_rule, &work, error);
}

// Names are nobody's where the machine has no such file. Where it has one that can't be read, as no descriptor is left,
// a rule for a name would fit nobody either, and whoever it is for would be free of it.
bool read_accounts(TextFile& file, const SystemPlaces& system, const char* name, ConfigError& error) {
    FilePath path(system.root);
    path.append(name);
    Reason why;
    const int code = file.open(path.c_str());
    if (code == ENOENT)
        return true;
    if (code != 0)
        explain_errno(code, why);
    return (code == 0 && file.read(kMostOfAccounts, why)) || error.set(path, why);
}

// `asked` is nullptr for this process itself.
bool visit_all(const Identity* asked, Visit visit, void* context, const SystemPlaces& system, OpenToml open_toml,
               ConfigError& error) {
    FilePath path;
    const std::string_view beside(system.file);
    size_t end = beside.size();
    while (end > 0 && beside[end - 1] != '/')
        --end;
    path.append(slice(beside, 0, end), "rules.d");
    const Folder folder(path.c_str());
    if (folder.descriptor() < 0) {
        if (folder.error() == ENOENT)
            return true;
        Reason why;
        explain_errno(folder.error(), why);
        return error.set(path, why);
    }
    const WorkSpace space;
    Work* const work = space.get();
    if (work == nullptr)
        return error.set(path, "cannot be read: no memory");
    work->folder = path;
    read_identity(system.root, work->identity);
    work->asked = asked == nullptr ? &work->identity : asked;
    work->visit = visit;
    work->context = context;
    struct stat status {};
    Reason why;
    if (::syscall(SYS_fstat, folder.descriptor(), &status) != 0 ||
        !only_root_can_change({status.st_mode, status.st_uid, status.st_gid}, system, kContent, why))
        return error.set(path.view(), why.empty() ? "cannot be read" : why.view());
    if (!list_files(*work, folder.descriptor(), error))
        return false;
    if (!read_accounts(work->users, system, "/etc/passwd", error) ||
        !read_accounts(work->groups, system, "/etc/group", error))
        return false;
    work->accounts = {work->users.view(), work->groups.view()};
    for (size_t i = 0; i < work->file_count; ++i)
        if (!read_file(*work, work->files[i], system, open_toml, error))
            return false;
    return true;
}

}  // namespace

bool load_rules(Settings& settings, const SystemPlaces& system, OpenToml open_toml, ConfigError& error) {
    const auto add = [](void* context, const Rule& rule, const Identity& own, const Match* match, ConfigError& why) {
        if (match == nullptr || !match->fits)
            return true;
        Settings& all = *static_cast<Settings*>(context);
        return apply(all, rule, why) && share(all, rule, own, why);
    };
    return visit_all(nullptr, add, &settings, system, open_toml, error);
}

bool visit_rules(const Identity& identity, Visit visit, void* context, const SystemPlaces& system, OpenToml open_toml,
                 ConfigError& error) {
    return visit_all(&identity, visit, context, system, open_toml, error);
}

}  // namespace cuslice::rules
