// SPDX-License-Identifier: Apache-2.0
// Where a frame of `cuslice top` is drawn: the one place that knows of characters for bars, colours and a terminal's
// sequences. What is drawn is in cli/top/frame.h.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

#include "cli/top/frame.h"

namespace cuslice::cli::top {

/// A surface that is drawn on from left to right and line by line. Not thread-safe.
class Canvas {
  public:
    virtual ~Canvas() = default;
    /// Escaped, and no wider than what is left of the line.
    virtual void text(const std::string& text, Tone tone) = 0;
    virtual void bar(const Bar& bar, size_t columns) = 0;
    virtual void spark(const Spark& spark, size_t columns) = 0;
    virtual void end_line() = 0;
    /// Shows what was drawn. False if nobody can see it any more.
    virtual bool flush() = 0;
};

void draw(const Line& line, Canvas& canvas);
void draw(const Lines& lines, Canvas& canvas);

/// One on which bars and spark-lines are characters: blocks, or without UTF-8 `#`, `-` and `.`.
class CharacterCanvas : public Canvas {
  public:
    explicit CharacterCanvas(bool utf8) : utf8_(utf8) {}
    void bar(const Bar& bar, size_t columns) override;
    void spark(const Spark& spark, size_t columns) override;

  private:
    void repeat(const char* character, size_t times, Tone tone);

    const bool utf8_;
};

/// Lines on stdout: each in its colours, or without any and then not ending in blanks.
class TextCanvas : public CharacterCanvas {
  public:
    TextCanvas(bool utf8, bool coloured) : CharacterCanvas(utf8), coloured_(coloured) {}
    void text(const std::string& text, Tone tone) override;
    void end_line() override;
    bool flush() override;
    /// The lines that are not flushed yet.
    const std::string& drawn() const { return text_; }

  private:
    const bool coloured_;
    std::string line_, text_;
};

}  // namespace cuslice::cli::top
