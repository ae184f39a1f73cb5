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
    bool make(std::string_view name, Reason& why) { return file_.make(name, why); }
    /// As File::append().
    File::Appended append(const Row& row, int& error) {
        if (file_.form() == Form::compact)
            return compact_.append(file_, row, error);
        RowText text;
        write_row(text, row);
        return file_.append(text.view(), error);
    }
    void cant_write(int error, Reason& why) const { file_.cant_write(error, why); }
    void finish() { file_.finish(); }
    const Path& path() const { return file_.path(); }

  private:
    File file_;
    Compact compact_;
};

}  // namespace cuslice::trace
