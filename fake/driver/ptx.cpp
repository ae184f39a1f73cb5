// SPDX-License-Identifier: Apache-2.0
// Kernels and variables of PTX text. Only declarations are read; bodies are skipped, except for shared and local memory
// (ptx_check.cpp looks at the instructions).

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "fake/driver/image.h"
#include "fake/driver/ptx_text.h"
#include "virtual_gpu/driver/ptx_type.h"

namespace cuslice::fake {
namespace {

using Token = std::string_view;

/// Bytes of a fundamental type, 0 if the token is none.
size_t type_bytes(Token token) {
    static constexpr struct {
        std::string_view name;
        size_t bytes;
    } kOthers[] = {{".pred", 1}, {".texref", 8}, {".samplerref", 8}, {".surfref", 8}};
    for (const auto& type : kOthers) {
        if (token == type.name)
            return type.bytes;
    }
    const bool is_pair = token.size() > 2 && token.substr(token.size() - 2) == "x2";
    return is_pair ? 2 * ptx_type_bytes(token.substr(0, token.size() - 2)) : ptx_type_bytes(token);
}

constexpr long long kMostThreads = kMaxThreadsPerBlock;

long long number(Token token) { return std::strtoll(std::string(token).c_str(), nullptr, 0); }

/// A variable or parameter as it is declared: name, size, alignment, initial value.
struct Declaration {
    std::string name;
    size_t element = 0, size = 0, align = 0;
    bool managed = false;
    std::vector<unsigned char> contents;
};

class Reader {
  public:
    Reader(std::string_view text, Image& image) : tokens_(ptx_tokens(text)), image_(image) {}

    bool read() {
        bool external = false;
        size_t constants = 0;
        while (at_ < tokens_.size()) {
            const Token token = tokens_[at_++];
            if (token == ".target") {
                read_target();
            } else if (token == ".extern") {
                external = true;
                continue;
            } else if (token == ".visible" || token == ".weak" || token == ".common") {
                continue;
            } else if (token == ".entry") {
                if (!read_entry())
                    return false;
            } else if (token == ".func") {
                skip_function();
            } else if (token == ".global" || token == ".const") {
                Declaration variable;
                if (!read_declaration(variable))
                    return false;
                if (token == ".const")
                    constants += variable.size;
                if (!external)
                    image_.variables.push_back({variable.name, variable.size, variable.contents, variable.managed});
            } else if (token == "{") {
                skip_block(nullptr);
            }
            external = false;
        }
        // One bank for all kernels of the text.
        for (KernelInfo& kernel : image_.kernels)
            kernel.const_bytes = static_cast<int>(constants);
        return true;
    }

    /// The last token that was looked at: where a text that can't be read goes wrong.
    Token reached() const {
        return tokens_.empty() ? Token() : tokens_[std::min(std::max<size_t>(at_, 1), tokens_.size()) - 1];
    }

  private:
    Token peek() const { return at_ < tokens_.size() ? tokens_[at_] : Token(); }
    Token next() { return at_ < tokens_.size() ? tokens_[at_++] : Token(); }
    bool take(Token wanted) {
        if (peek() != wanted)
            return false;
        at_++;
        return true;
    }

    void read_target() {
        for (; at_ < tokens_.size() && tokens_[at_][0] != '.'; at_++) {
            if (tokens_[at_].rfind("sm_", 0) == 0)
                image_.capability = static_cast<int>(number(tokens_[at_].substr(3)));
        }
    }

    /// `.align 4 .b8 name[20] = {…}` and the like, up to what follows it.
    bool read_declaration(Declaration& out) {
        bool vector2 = false, vector4 = false;
        for (; at_ < tokens_.size() && peek()[0] == '.'; at_++) {
            const Token token = peek();
            if (token == ".align") {
                out.align = static_cast<size_t>(number(tokens_[std::min(++at_, tokens_.size() - 1)]));
            } else if (token == ".attribute") {
                for (at_++; at_ < tokens_.size() && peek() != ")"; at_++)
                    out.managed = out.managed || peek() == ".managed";
            } else if (token == ".v2") {
                vector2 = true;
            } else if (token == ".v4") {
                vector4 = true;
            } else if (const size_t bytes = type_bytes(token); bytes != 0) {
                out.element = bytes;
            }
        }
        if (out.element == 0 || at_ >= tokens_.size())
            return false;
        out.element *= vector4 ? 4 : vector2 ? 2 : 1;
        out.size = out.element;
        out.name = tokens_[at_++];
        while (take("[")) {
            if (take("]")) {
                out.size = 0;  // `extern` shared memory, or a size that the initial value gives
                continue;
            }
            out.size *= static_cast<size_t>(number(peek()));
            at_++;
            if (!take("]"))
                return false;
        }
        if (take("="))
            read_contents(out);
        if (out.size == 0)
            out.size = out.contents.size();
        return true;
    }

    /// Numbers, in nested braces or alone. Addresses of other variables are left zero.
    void read_contents(Declaration& out) {
        int depth = 0;
        for (; at_ < tokens_.size(); at_++) {
            const Token token = peek();
            if (token == "{") {
                depth++;
            } else if (token == "}") {
                depth--;
            } else if (token == ";" || (token == "," && depth == 0)) {
                return;
            } else if (token != "," && token != "-" && token != "+") {
                append(out, token, at_ > 0 && tokens_[at_ - 1] == "-");
            }
        }
    }

    static void append(Declaration& out, Token token, bool negative) {
        uint64_t bits = 0;
        const bool hexadecimal_float = token.size() > 2 && token[0] == '0' && std::strchr("fFdD", token[1]) != nullptr;
        if (hexadecimal_float) {
            bits = std::strtoull(std::string(token.substr(2)).c_str(), nullptr, 16);
        } else if (std::isdigit(static_cast<unsigned char>(token[0])) != 0) {
            bits = std::strtoull(std::string(token).c_str(), nullptr, 0);
            if (negative)
                bits = ~bits + 1;
        }
        for (size_t i = 0; i < out.element; i++) {
            out.contents.push_back(i < 8 ? static_cast<unsigned char>(bits >> (8 * i)) : '\0');
        }
    }

    bool read_entry() {
        KernelInfo kernel;
        if (at_ >= tokens_.size())
            return false;
        kernel.name = tokens_[at_++];
        kernel.parameters_known = take("(");
        while (kernel.parameters_known && !take(")")) {
            Declaration parameter;
            if (!take(".param") || !read_declaration(parameter))
                return false;
            const size_t align = std::max<size_t>(parameter.align != 0 ? parameter.align : parameter.element, 1);
            const size_t offset = (kernel.parameter_bytes() + align - 1) / align * align;
            kernel.parameters.push_back({offset, parameter.size});
            take(",");
        }
        // Directives, up to the body or the end of the declaration.
        while (at_ < tokens_.size() && peek() != "{" && peek() != ";" && peek() != ".entry" && peek() != ".visible") {
            const Token token = tokens_[at_++];
            if (token == ".maxntid" || token == ".reqntid") {
                const auto limited = [](long long count) { return std::clamp(count, 1LL, kMostThreads); };
                long long threads = limited(number(next()));
                while (take(","))
                    threads = limited(threads * limited(number(next())));
                kernel.max_threads = static_cast<int>(threads);
            } else if (token == ".reqnctapercluster" || token == ".explicitcluster") {
                kernel.cluster_required = true;
            } else if (token == ".global" || token == ".const" || token == ".func" || token == ".extern") {
                at_--;
                break;
            }
        }
        take(";");
        if (take("{"))
            skip_block(&kernel);
        image_.kernels.push_back(std::move(kernel));
        return true;
    }

    void skip_function() {
        while (at_ < tokens_.size() && peek() != "{" && peek() != ";")
            at_++;
        if (take("{"))
            skip_block(nullptr);
    }

    /// To the end of a block whose brace is taken; a kernel's own shared and local memory are added up.
    void skip_block(KernelInfo* kernel) {
        for (int depth = 1; at_ < tokens_.size() && depth > 0;) {
            const Token token = tokens_[at_++];
            if (token == "{")
                depth++;
            if (token == "}")
                depth--;
            if ((token != ".shared" && token != ".local") || kernel == nullptr)
                continue;
            int& bytes = token == ".shared" ? kernel->shared_bytes : kernel->local_bytes;
            Declaration variable;
            if (read_declaration(variable))
                bytes += static_cast<int>(variable.size);
        }
    }

    std::vector<Token> tokens_;
    size_t at_ = 0;
    Image& image_;
};

}  // namespace

bool read_ptx(const char* text, size_t size, Image& image) {
    Reader reader({text, size}, image);
    if (reader.read())
        return true;
    image.fault = ptx_fault({text, size}, reader.reached(), "the declaration before this can't be read");
    return false;
}

}  // namespace cuslice::fake
