// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>

#include "fake/driver/ptx_text.h"

namespace cuslice::fake {
namespace {

using Token = std::string_view;

// The newest version of PTX that a driver of CUDA 13.0 compiles. Later ones may have instructions that aren't here.
constexpr double kNewestVersion = 9.0;

// All instructions of the "Parallel Thread Execution ISA" 9.0, without their modifiers; sorted.
constexpr Token kInstructions[] = {
    "abs",          "activemask",    "add",       "addc",       "alloca",
    "and",          "applypriority", "atom",      "bar",        "barrier",
    "bfe",          "bfi",           "bfind",     "bmsk",       "bra",
    "brev",         "brkpt",         "brx",       "call",       "clusterlaunchcontrol",
    "clz",          "cnot",          "copysign",  "cos",        "cp",
    "createpolicy", "cvt",           "cvta",      "discard",    "div",
    "dp2a",         "dp4a",          "elect",     "ex2",        "exit",
    "fence",        "fma",           "fns",       "getctarank", "griddepcontrol",
    "isspacep",     "istypep",       "ld",        "ldmatrix",   "ldu",
    "lg2",          "lop3",          "mad",       "mad24",      "madc",
    "mapa",         "match",         "max",       "mbarrier",   "membar",
    "min",          "mma",           "mov",       "movmatrix",  "mul",
    "mul24",        "multimem",      "nanosleep", "neg",        "not",
    "or",           "pmevent",       "popc",      "prefetch",   "prefetchu",
    "prmt",         "rcp",           "red",       "redux",      "rem",
    "ret",          "rsqrt",         "sad",       "selp",       "set",
    "setmaxnreg",   "setp",          "shf",       "shfl",       "shl",
    "shr",          "sin",           "slct",      "sqrt",       "st",
    "stackrestore", "stacksave",     "stmatrix",  "sub",        "subc",
    "suld",         "suq",           "sured",     "sust",       "szext",
    "tanh",         "tcgen05",       "tensormap", "testp",      "tex",
    "tld4",         "trap",          "txq",       "vabsdiff",   "vabsdiff2",
    "vabsdiff4",    "vadd",          "vadd2",     "vadd4",      "vavrg2",
    "vavrg4",       "vmad",          "vmax",      "vmax2",      "vmax4",
    "vmin",         "vmin2",         "vmin4",     "vote",       "vset",
    "vset2",        "vset4",         "vshl",      "vshr",       "vsub",
    "vsub2",        "vsub4",         "wgmma",     "wmma",       "xor",
};
static_assert(std::is_sorted(std::begin(kInstructions), std::end(kInstructions)));

template <size_t count>
bool one_of(Token token, const Token (&list)[count]) {
    return std::find(std::begin(list), std::end(list), token) != std::end(list);
}

bool number(Token token) {
    return !token.empty() && std::isdigit(static_cast<unsigned char>(token[0])) != 0 &&
           token.find_first_not_of("0123456789.") == token.npos;
}

class Checker {
  public:
    explicit Checker(Token text) : text_(text), tokens_(ptx_tokens(text)) {}

    std::string check() {
        if (header()) {
            while (at_ < tokens_.size() && directive()) {
            }
        }
        return fault_;
    }

    /// Where the directives begin that aren't the module's header.
    size_t header_end() {
        header();
        if (peek() == ".address_size")
            at_ += 2;
        return at_ < tokens_.size() ? static_cast<size_t>(peek().data() - text_.data()) : text_.size();
    }

  private:
    Token peek() const { return at_ < tokens_.size() ? tokens_[at_] : Token(); }
    Token next() { return at_ < tokens_.size() ? tokens_[at_++] : Token(); }
    bool wrong(Token token, const char* what) {
        fault_ = ptx_fault(text_, token, token.data() == nullptr ? "the text ends in the middle of a statement" : what);
        return false;
    }
    bool misplaced(Token token) { return wrong(token, "not expected here"); }

    bool header() {
        if (const Token first = next(); first != ".version")
            return wrong(first, "a text begins with .version");
        const Token version = next();
        if (!number(version))
            return wrong(version, "no version of PTX");
        known_instructions_ = std::atof(std::string(version).c_str()) <= kNewestVersion;
        if (const Token second = next(); second != ".target")
            return wrong(second, ".target follows .version");
        bool architecture = false;
        for (Token word = next();; word = next()) {
            if (word.empty() || word[0] == '.' || std::isalpha(static_cast<unsigned char>(word[0])) == 0)
                return wrong(word, "no target");
            architecture = architecture || word.substr(0, 3) == "sm_";
            if (peek() != ",")
                break;
            at_++;
        }
        return architecture || wrong(tokens_[at_ - 1], "no target");
    }

    /// To the end of a statement, past its semicolon; braces in it are lists.
    bool skip_statement() {
        int depth = 0;
        while (at_ < tokens_.size()) {
            const Token token = tokens_[at_++];
            if (token == "{")
                depth++;
            if (token == "}" && depth-- == 0)
                return misplaced(token);
            if (token == ";" && depth == 0)
                return true;
        }
        return misplaced(Token());
    }

    /// To the end of the line that the token before begins.
    void skip_line() {
        const char* end = std::find(tokens_[at_ - 1].data(), text_.data() + text_.size(), '\n');
        while (at_ < tokens_.size() && tokens_[at_].data() < end)
            at_++;
    }

    /// One directive of the module.
    bool directive() {
        static constexpr Token kStatements[] = {".global", ".const",  ".shared",  ".local",      ".param",  ".reg",
                                                ".tex",    ".texref", ".surfref", ".samplerref", ".pragma", ".alias"};
        static constexpr Token kLinkage[] = {".extern", ".visible", ".weak", ".common"};
        const Token token = next();
        if (one_of(token, kLinkage))
            return true;
        if (one_of(token, kStatements))
            return skip_statement();
        if (token == ".entry" || token == ".func")
            return function();
        if (token == ".address_size")
            return number(peek()) ? (at_++, true) : misplaced(peek());
        if (token == ".file" || token == "@") {  // @@DWARF, in old texts
            skip_line();
            return true;
        }
        if (token == ".section") {
            at_++;
            const Token open = next();
            return open == "{" ? skip_block() : misplaced(open);
        }
        return misplaced(token);
    }

    bool skip_block() {
        for (int depth = 1; depth > 0;) {
            const Token token = next();
            if (token.empty())
                return misplaced(token);
            depth += token == "{" ? 1 : token == "}" ? -1 : 0;
        }
        return true;
    }

    bool function() {
        static constexpr Token kOthers[] = {".entry", ".func", ".visible", ".extern", ".version", ".target", "}"};
        while (at_ < tokens_.size()) {
            const Token token = tokens_[at_++];
            if (token == ";")
                return true;
            if (token == "{")
                return body();
            // A kernel may be declared with its name alone.
            if (one_of(token, kOthers))
                return at_--, token == "}" ? misplaced(token) : true;
        }
        return true;
    }

    /// A block whose brace is taken.
    bool body() {
        static constexpr Token kStatements[] = {".reg",           ".local",       ".shared",       ".param",
                                                ".global",        ".const",       ".pragma",       ".tex",
                                                ".branchtargets", ".calltargets", ".callprototype"};
        for (;;) {
            const Token token = next();
            if (token == "}")
                return true;
            if (token == ";")
                continue;
            if (token == ".loc" || token == ".file") {
                skip_line();
            } else if (token == "{") {
                if (!body())
                    return false;
            } else if (one_of(token, kStatements)) {
                if (!skip_statement())
                    return false;
            } else if (token == "@") {
                if (peek() == "!")
                    at_++;
                at_++;
                if (!instruction(next()))
                    return false;
            } else if (peek() == ":" && (at_ + 1 >= tokens_.size() || tokens_[at_ + 1] != ":")) {
                at_++;  // a label; an instruction may have "::" in it
            } else if (!instruction(token)) {
                return false;
            }
        }
    }

    bool instruction(Token token) {
        if (token.empty() || (std::isalpha(static_cast<unsigned char>(token[0])) == 0 && token[0] != '_'))
            return misplaced(token);
        const Token name = token.substr(0, token.find('.'));
        if (known_instructions_ && !std::binary_search(std::begin(kInstructions), std::end(kInstructions), name))
            return wrong(token, "no instruction");
        return skip_statement();
    }

    Token text_;
    std::vector<Token> tokens_;
    size_t at_ = 0;
    bool known_instructions_ = true;
    std::string fault_;
};

}  // namespace

std::string check_ptx(std::string_view text) { return Checker(text).check(); }

std::string_view ptx_without_header(std::string_view text) { return text.substr(Checker(text).header_end()); }

}  // namespace cuslice::fake
