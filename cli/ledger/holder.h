// SPDX-License-Identifier: Apache-2.0
// A process in an account of a ledger, and the columns in which `cuslice ps`, `cuslice top`, their JSON, help and
// documents show it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ledger/cells.h"
#include "cli/ledger/ledger_files.h"
#include "cli/text/json.h"
#include "policy/ledger/layout.h"

namespace cuslice::cli {

/// One process in one account. Sizes are in bytes, `gpu` is a UUID. Names are what other users wrote.
struct Holder {
    std::string gpu;
    unsigned user = 0;
    std::string kind, name;  // the account's: "job", "group" or "rule"
    bool inner = false;      // the account lies within another one, and is no further part of what is committed
    int pid = 0;
    std::string command;
    std::vector<std::string> command_line;  // empty: it can't be had (cli/text/command_line.h)
    uint64_t used = 0, together = 0;        // by the process, and by all of its account
    uint64_t peak = 0;                      // the most that all of the account have held at once
    uint64_t reserved = 0, limit = 0;       // of the account; a limit of ledger::kNoLimitBytes is none
    uint64_t since = 0, idle_seconds = 0;   // since: CLOCK_REALTIME, nanoseconds
};

/// The holder that a ledger's member is: `file` is one moment of `one`, and `index` that of a living member of an
/// account.
Holder holder_of(const ledger::File& file, uint32_t index, const LedgerFiles::One& one);

/// The way in which values of one kind are shown, and written and read as JSON.
struct ColumnKind {
    /// Says in documents what stands in JSON: "bytes".
    std::string_view unit;
    Align align = Align::left;
    /// Not escaped. Null of what has no column.
    Cell (*cell)(const Holder& holder, Form form) = nullptr;
    Json (*write)(const Holder& holder) = nullptr;
    /// Throws if `value` is none of this kind. Null of what follows from other values, or means nothing elsewhere.
    void (*read)(const Json& value, Holder& holder) = nullptr;
};

/// A column of the jobs in `cuslice top`, where several processes of an account have a row each below the account's.
struct TopColumn {
    enum class Of : uint8_t { account, process };

    std::string_view heading = {};  // empty: none
    /// Where there is no room for all columns, those of the highest numbers are left out; 0: never. Of the columns that
    /// are always drawn, the commands have 0 and the names 6.
    unsigned rank = 0;
    Of of = Of::process;
};

/// All that is to be said of one column; nothing elsewhere names one.
struct HolderColumn {
    std::string_view key;  // in JSON
    ColumnKind kind;
    /// In `cuslice ps`, and from the left; without a heading it is in JSON alone.
    std::string_view heading = {};
    unsigned place = 0;
    /// Its words in `cuslice help ps`: "what is reserved"; empty where the heading is enough.
    std::string_view help = {};
    /// Its words in docs/sharing.md.
    std::string_view meaning = {};
    TopColumn top = {};
    /// An answer of another machine that lacks it is none. A new column isn't: earlier versions don't have it.
    bool required = false;
};

/// All columns, in the order of JSON.
std::span<const HolderColumn> holder_columns();
/// The columns of `cuslice ps`, from left to right.
std::vector<const HolderColumn*> ps_columns();
/// The columns that `cuslice top` shows of accounts, or of processes.
std::vector<const HolderColumn*> top_columns(TopColumn::Of of);

/// The holder as an object of JSON.
Json json_of(const Holder& holder);
/// Reads such an object, which may hold anything; throws an exception of the standard library if it is none.
Holder read_holder(const Json& row);

/// "the memory it holds (USED), the limit, and …": the columns' words of help.
std::string columns_in_words();
/// The rows of all columns, for documents.
Json json_of_columns();

}  // namespace cuslice::cli
