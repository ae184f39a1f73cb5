// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tests of the fake GPU run in a forked child each: the driver reads its environment once, and a fault or an unfinished
// driver must not reach the next test. The parent never calls CUDA.

#include <functional>
#include <map>
#include <sstream>
#include <string>

namespace fake_test {

/// Where a child's failed expectations go.
class Report {
  public:
    explicit Report(int file) : file_(file) {}
    void fail(const char* file, int line, const std::string& what) const;

    template <typename A, typename B>
    void equal(const char* file, int line, const char* text, const A& a, const B& b) const {
        if (a == b)
            return;
        std::ostringstream out;
        out << text << ": " << a << " is not " << b;
        fail(file, line, out.str());
    }

  private:
    int file_;
};

using Environment = std::map<std::string, std::string>;
using Body = std::function<void(const Report&)>;

/// Runs the body in a child with these variables set (empty value: unset) and returns what failed, "" if nothing did.
/// A child that ends by a signal says so: "signal 11". CUSLICE_FAKE_DIR is a folder of its own unless it is given; what
/// the child writes to stderr is added to `said`.
std::string in_child(const Environment& environment, const Body& body, std::string* said = nullptr);

/// A folder that is removed with its contents at the end.
class Folder {
  public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace fake_test

#define EXPECT(condition)                                \
    do {                                                 \
        if (!(condition))                                \
            report.fail(__FILE__, __LINE__, #condition); \
    } while (false)
#define EXPECT_EQUAL(a, b) report.equal(__FILE__, __LINE__, #a " == " #b, a, b)
