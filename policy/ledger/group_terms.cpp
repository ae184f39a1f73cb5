// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/group_terms.h"

#include <string.h>

#include "config/size.h"

namespace cuslice::ledger {

namespace {

using Notice = FixedText<640>;

std::string_view name_of(const Account& account) { return {account.name, strnlen(account.name, sizeof account.name)}; }

// As an option takes it.
void append_setting(Notice& line, uint64_t bytes) {
    constexpr uint64_t kMiB = 1 << 20, kKiB = 1 << 10;
    if (bytes % kMiB == 0)
        line.append(bytes / kMiB, "MiB");
    else
        line.append(bytes / kKiB, "KiB");
}

// `limited`: the process brings a limit, and only the name is worth a word.
void append_new(Notice& line, const GroupTerms& terms, bool limited) {
    const bool similar = terms.similar[0] != '\0';
    if (terms.known)
        line.append("it has no limit");
    else
        line.append(limited ? "it is new" : "it is new and has no limit");
    if (similar)
        line.append("; did you mean ", terms.similar, "?");
    if (!limited)
        line.append(similar ? " Else set" : ": set", " one with --group-limit SIZE");
}

void append_brought(Notice& line, uint64_t wanted, uint64_t used) {
    line.append("it had no limit: from now on all of its programs share ", format_size(wanted));
    if (used <= wanted)
        return;
    line.append("; ", format_size(used));
    line.append(" are in use already, so nothing is taken away, and nothing more granted until it is less");
}

void append_ignored(Notice& line, std::string_view name, uint64_t limit, uint64_t wanted) {
    line.append("its limit is ", format_size(limit), " and stays so; the ");
    line.append(format_size(wanted), " given here are ignored. To change it: cuslice set --group ");
    append_setting(line.append(name, " --limit "), wanted);
}

}  // namespace

const Account* similar_group(const File& file, const char* name) {
    for (const Account& account : file.accounts) {
        if (is_free(account) || account.kind != AccountKind::group)
            continue;
        if (edit_distance(name_of(account), name) == 1)
            return &account;
    }
    return nullptr;
}

GroupTerms find_terms(const File& file, const Account* account, const char* name) {
    GroupTerms terms;
    terms.known = account != nullptr;
    if (account) {
        terms.lives = has_members(file, index_of(file, account));
        terms.limit = account->limit.load();
        terms.used = __atomic_load_n(&account->total.bytes, __ATOMIC_RELAXED);
    } else if (const Account* similar = similar_group(file, name)) {
        static_assert(sizeof terms.similar == sizeof similar->name);
        memcpy(terms.similar, similar->name, sizeof terms.similar);
        terms.similar[sizeof terms.similar - 1] = '\0';
    }
    return terms;
}

void bring_limit(Account* account, uint64_t limit) {
    if (limit != kNoLimitBytes && account->limit.load() == kNoLimitBytes)
        account->limit.store(limit);
}

FixedText<640> describe_group(std::string_view name, std::string_view place, const GroupTerms& terms, uint64_t wanted) {
    const bool limited = wanted != kNoLimitBytes, has_limit = terms.limit != kNoLimitBytes;
    Notice line("group ");
    line.append(name, ": ");
    if (!place.empty())
        line.append("on ", place, " ");
    if (!terms.known) {
        if (limited && !terms.similar[0])
            return {};
        append_new(line, terms, limited);
    } else if (!limited && !has_limit) {
        append_new(line, terms, limited);
    } else if (!limited) {
        line.append("this program shares the group's limit of ", format_size(terms.limit));
        line.append(", of which ", format_size(terms.used), " are in use");
    } else if (!terms.lives || terms.limit == wanted) {
        return {};  // the first member's limit is the group's
    } else if (!has_limit) {
        append_brought(line, wanted, terms.used);
    } else {
        append_ignored(line, name, terms.limit, wanted);
    }
    return line;
}

}  // namespace cuslice::ledger
