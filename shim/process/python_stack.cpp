// SPDX-License-Identifier: Apache-2.0
#include "shim/process/python_stack.h"

#include <cerrno>

#include "policy/base/own_memory.h"
#include "shim/process/python_text.h"
#include "virtual_gpu/driver/loaded_object.h"

namespace cuslice {

namespace {

constexpr uint16_t kNone = 0xffff;

// Where CPython keeps a thread's frames: offsets in bytes, as offsetof gives them with the headers of each version
// (Include/cpython/pystate.h, code.h, frameobject.h and unicodeobject.h, Include/internal/pycore_frame.h). They are the
// same in all releases of a minor version, but for builds without the interpreter's lock.
struct Layout {
    char minor[3];
    uint16_t frames;          // in a thread's state: its innermost frame, or what holds it
    uint16_t held;            // in the holder; kNone: there is none
    uint16_t back, code;      // in a frame
    uint16_t position;        // in a frame: a number below 3.11, an instruction's address since
    uint16_t position_bytes;  // of one such number; kNone: an address
    uint16_t owner;           // in a frame; kNone: there is none
    uint16_t instructions;    // in a code object
    uint16_t file, function;  // in a code object
    PythonTextLayout text;
};
constexpr Layout kLayouts[] = {
    {"8", 24, kNone, 24, 32, 104, 1, kNone, kNone, 104, 112, {48, 72}},
    {"9", 24, kNone, 24, 32, 104, 1, kNone, kNone, 104, 112, {48, 72}},
    {"10", 24, kNone, 24, 32, 96, 2, kNone, kNone, 104, 112, {48, 72}},
    {"11", 56, 8, 48, 32, 56, kNone, 69, 184, 112, 128, {48, 72}},
    {"12", 56, 0, 8, 0, 56, kNone, 70, 192, 112, 128, {40, 56}},
    {"13", 72, kNone, 8, 0, 56, kNone, 70, 200, 112, 128, {40, 56}},
};
// As far as anything is read of them.
using FrameObject = OwnMemory<112>;
using CodeObject = OwnMemory<136>;
constexpr uint16_t kType = 8, kCount = 16;  // in any object, and in one of variable size
constexpr uint8_t kOwnedByC = 3;            // by this owner a frame stands for a call of the interpreter
constexpr uint64_t kInstruction = 2;        // bytes
constexpr size_t kMostOfFunction = 100;     // bytes
constexpr std::string_view kGap = "…";      // in place of frames that have no room
constexpr size_t kRoom = trace::kMostOfStack - kGap.size() - 1;

const Layout* layout_of(std::string_view version) {
    constexpr std::string_view kMajor = "3.";
    if (!starts_with(version, kMajor) || version.find("free-threading") != version.npos)
        return nullptr;
    const std::string_view minor = leading_digits(slice(version, kMajor.size()));
    for (const Layout& layout : kLayouts)
        if (minor == layout.minor)
            return &layout;
    return nullptr;
}

}  // namespace

// The interpreter of this process.
struct PythonStack::Interpreter {
    bool find();
    uintptr_t innermost() const;
    bool stands_for_a_call(const FrameObject& frame) const;
    int position_in(const FrameObject& frame, uintptr_t place, const CodeObject& code) const;
    PythonText text_at(const CodeObject& code, uint16_t offset) const {
        return read_python_text(code.at<uintptr_t>(offset), text_type, layout->text);
    }
    FrameText text_of(const Frame& frame) const;

    const Layout* layout = nullptr;
    uintptr_t code_type = 0, text_type = 0;
    void* (*this_thread)() = nullptr;
    int (*line)(void* code, int position) = nullptr;
};

// Looked for each time: it may come late, and may go.
bool PythonStack::Interpreter::find() {
    const char* (*version)() = nullptr;
    const auto take = [&](const LoadedObject& object) {
        void* const thread = object.find("PyGILState_GetThisThreadState");
        if (!thread)
            return false;
        this_thread = reinterpret_cast<decltype(this_thread)>(thread);
        line = reinterpret_cast<decltype(line)>(object.find("PyCode_Addr2Line"));
        code_type = reinterpret_cast<uintptr_t>(object.find("PyCode_Type"));
        text_type = reinterpret_cast<uintptr_t>(object.find("PyUnicode_Type"));
        version = reinterpret_cast<decltype(version)>(object.find("Py_GetVersion"));
        return true;
    };
    if (!any_object(take) || !version || !line || !code_type || !text_type)
        return false;
    layout = layout_of(version());
    return layout != nullptr;
}

// 0: this thread runs no Python.
uintptr_t PythonStack::Interpreter::innermost() const {
    const auto thread = reinterpret_cast<uintptr_t>(this_thread());
    if (!thread)
        return 0;
    const auto frame = OwnMemory<8>(thread + layout->frames).at<uintptr_t>(0);
    return layout->held == kNone ? frame : OwnMemory<8>(frame + layout->held).at<uintptr_t>(0);
}

bool PythonStack::Interpreter::stands_for_a_call(const FrameObject& frame) const {
    return layout->owner != kNone && frame.at<uint8_t>(layout->owner) == kOwnedByC;
}

// Below 3.11 a number of bytes, or of instructions.
int PythonStack::Interpreter::position_in(const FrameObject& frame, uintptr_t place, const CodeObject& code) const {
    if (layout->position_bytes != kNone)
        return frame.at<int>(layout->position) * layout->position_bytes;
    const uintptr_t position = frame.at<uintptr_t>(layout->position) - (place + layout->instructions);
    return position < code.at<uint64_t>(kCount) * kInstruction ? static_cast<int>(position) : -1;
}

PythonStack::FrameText PythonStack::Interpreter::text_of(const Frame& frame) const {
    const CodeObject code(frame.code);
    FrameText text;
    trace::append_field(text, slice(text_at(code, layout->function), 0, kMostOfFunction));
    text.append(" (");
    trace::append_field(text, without_packages_folder(text_at(code, layout->file)));
    const int number = frame.position < 0 ? -1 : line(reinterpret_cast<void*>(frame.code), frame.position);
    if (number > 0)
        text.append(':', number);
    text.append(')');
    return text;
}

void PythonStack::collect(const Interpreter& python) {
    uintptr_t at = python.innermost();
    for (size_t steps = 0; at && steps < 2 * kMostFrames; steps++) {
        const FrameObject frame(at);
        at = frame.at<uintptr_t>(python.layout->back);
        if (python.stands_for_a_call(frame))
            continue;
        const auto place = frame.at<uintptr_t>(python.layout->code);
        const CodeObject code(place);
        if (code.at<uintptr_t>(kType) != python.code_type)
            return;
        more_ = count_ == kMostFrames;
        if (more_)
            return;
        frames_[count_++] = {place, python.position_in(frame, place, code)};
    }
}

// False: it has no room.
bool PythonStack::add_inner(const FrameText& text) {
    if (inner_.view().size() + text.view().size() + 1 > kRoom)
        return false;
    inner_.append(text.view(), ';');
    ends_[inner_count_++] = static_cast<uint16_t>(inner_.view().size());
    return true;
}

void PythonStack::keep_half_of_inner() {
    while (inner_count_ > 1 && ends_[inner_count_ - 1] > kRoom / 2)
        inner_count_--;
}

void PythonStack::write_outer(const Interpreter& python) {
    const size_t room = kRoom - ends_[inner_count_ - 1];
    for (size_t number = count_; !more_ && number > inner_count_; number--) {
        const FrameText text = python.text_of(frames_[number - 1]);
        if (text_.view().size() + text.view().size() + 1 > room)
            break;
        text_.append(text.view(), ';');
    }
    text_.append(kGap, ';');
}

void PythonStack::write(const Interpreter& python) {
    while (inner_count_ < count_ && add_inner(python.text_of(frames_[inner_count_])))
        continue;
    if (inner_count_ < count_ || more_) {
        keep_half_of_inner();
        write_outer(python);
    }
    for (size_t number = inner_count_; number > 0; number--) {
        const size_t begin = number > 1 ? ends_[number - 2] : 0, end = ends_[number - 1];
        text_.append(slice(inner_, begin, end - begin - (number == 1 ? 1 : 0)));
    }
}

std::string_view PythonStack::read() {
    const int saved_errno = errno;
    Interpreter python;
    if (python.find()) {
        collect(python);
        write(python);
    }
    errno = saved_errno;
    return text_;
}

}  // namespace cuslice
