// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "policy/trace/compact.h"
#include "policy/trace/file.h"
#include "policy/trace/row.h"

namespace cuslice::trace {

/// A recording in the form that its name asks for. Thread-safe but for make().
class Log {
  public:
    bool make(std::string_view name, Reason& why, Columns columns = Columns::usual) {
        columns_ = columns;
        return file_.make(name, why, columns);
    }
    /// As File::append().
    File::Appended append(const Row& row, int& error) {
        if (file_.form() == Form::compact)
            return compact_.append(file_, row, error);
        if (row.program.empty() && row.stack.empty()) [[likely]]
            return append_as<RowText>(row, error);
        return append_as<LongRowText>(row, error);
    }
    void cant_write(int error, Reason& why) const { file_.cant_write(error, why); }
    void finish() { file_.finish(); }
    const Path& path() const { return file_.path(); }

  private:
    template <typename Text>
    File::Appended append_as(const Row& row, int& error) {
        Text text;
        write_row(text, row, columns_);
        return file_.append(text.view(), error);
    }
    File file_;
    Columns columns_ = Columns::usual;
    Compact compact_;
};

}  // namespace cuslice::trace
