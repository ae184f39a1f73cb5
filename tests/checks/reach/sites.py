# SPDX-License-Identifier: Apache-2.0
"""Finds in the sources whatever reaches outside the process: variables, files, descriptors, shared memory, programs."""
import ast
import collections
import re

from .code import Source

FOLDERS = ("cli", "config", "elf", "fake", "integrations", "policy", "python", "shim", "stub", "virtual_gpu")
ENDINGS = (".c", ".cpp", ".h", ".inc", ".py")

#: Ends the name of what leaves a descriptor that a program which is started afterwards inherits.
INHERITED = "+"
OPENING = """open open64 openat openat2 creat fopen freopen pipe pipe2 dup dup2 dup3 socket socketpair accept accept4
    eventfd signalfd memfd_create inotify_init1 epoll_create1 timerfd_create shm_open mkstemp mkostemp
    pidfd_open""".split()
FILES = """opendir mkdir mkdirat mkdtemp unlink unlinkat rmdir rename renameat renameat2 symlink symlinkat link linkat
    chmod fchmod fchmodat chown fchown fchownat lchown truncate ftruncate posix_fallocate fallocate readlink
    readlinkat""".split()
STARTING = """execve execv execvp execvpe execl execlp execle execveat fexecve posix_spawn posix_spawnp popen system
    dlopen dlmopen setuid seteuid setreuid setresuid setgid setegid setregid setresgid setgroups chroot unshare setns
    ptrace""".split()
OURS = "keep_descriptor open_file real_dlopen".split()
LOOKED_INTO = ["mmap", "mmap64", "fcntl", "flock"]
CALL = re.compile(r"(?<![\w])(" + "|".join(OPENING + FILES + STARTING + OURS + LOOKED_INTO) + r")\s*\(")
STREAM = re.compile(r"\b(ifstream|ofstream|fstream|directory_iterator|recursive_directory_iterator|create_directory|"
                    r"create_directories|remove_all|create_symlink|copy_file|resize_file|permissions)\b(?=[\s\w]*[({])")
RAW = re.compile(r"\b(?:syscall|kernel)\s*\(\s*SYS_(\w+)")
TEXT_FILE = re.compile(r"\bTextFile::read\s*\(|\b(?:file|status)\.open\s*\(")
LOADED = re.compile(r"(?<![\w])(\w+)\s*(\()(?=[^;{}]*\bRTLD_(?:NOW|LAZY)\b)")
CLOSED_BY_EXEC = re.compile(r"\bO_CLOEXEC|\bSOCK_CLOEXEC|\bEFD_CLOEXEC|\bSFD_CLOEXEC|\bMFD_CLOEXEC|\bIN_CLOEXEC")
#: Functions and methods of ours that have the name of a system call, and are called without an object before them.
OWN_FUNCTIONS = {
    ("cli/ledger/job.cpp", "open"), ("cli/ledger/read_stats.cpp", "open_file"), ("cli/top/node_watch.cpp", "accept"),
    ("fake/driver/gpu.h", "unshare"), ("policy/allocator/caching_allocator-inl.h", "open"),
    ("policy/allocator/spans.cpp", "link"), ("policy/allocator/spans.cpp", "unlink"),
    ("shim/process/process_fork.cpp", "unshare"), ("virtual_gpu/cache/fences.cpp", "link"),
}  # fmt: skip
LIBRARIES = ("", "std", "fs", "filesystem")

VARIABLE = re.compile(r'"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)=?"')
READ_BY_NAME = re.compile(r'(?:\b(?:secure_)?getenv\s*\(|\benvironment_?(?:\.|->)get\s*\(|'
                          r'\bvariable\s*\((?:[^()"]*(?:\(\)|),)?)\s*"(\w+)"')
READ_BY_CONSTANT = re.compile(r"\b(?:secure_)?getenv\s*\(\s*(?:\w+::)*(\w+)")
NO_VARIABLES = re.compile(r"(?:CUDA|CUBLAS|CUDNN|CU)_(?:ERROR|STATUS|UNKNOWN|DEV)_|^(?:CUDNN_|CUBLAS_|LIBCUDA_)|"
                          r"^PCI_BUS_ID$")
# The rows of settings spell their variables from their names.
SETTING = re.compile(r'\.name = "([a-z][a-z-]*)"')
PATH = re.compile(r'"((?:/(?:proc|sys|etc|dev|tmp|run|usr|var|bin|lib)\b)[\w./%{}-]*)"')


class Found:
    """operations: file → function → names of operations, counted; variables and paths: name → places; settings: their
    variables, all of which are read and handed on in one way.
    """

    def __init__(self):
        self.operations = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
        self.settings = set()
        self.variables = collections.defaultdict(list)
        self.paths = collections.defaultdict(list)
        self.unknown = []


def _closed_by_exec(source, arguments, sources):
    """By its own flags, or by those of a constant or variable that is defined in the same folder."""
    if CLOSED_BY_EXEC.search(arguments):
        return True
    folder = source.name.rsplit("/", 1)[0] + "/"
    for word in re.findall(r"\b[a-z]\w+\b", arguments):
        defined = re.compile(r"\b" + word + r"\s*=\s*[^;]*\bO_CLOEXEC")
        if any(name.startswith(folder) and defined.search(one.code) for name, one in sources.items()):
            return True
    return False


def _of_fcntl(arguments):
    if re.search(r"\bF_DUPFD\b", arguments):
        return "dup" + INHERITED
    if "F_DUPFD_CLOEXEC" in arguments:
        return "dup"
    if re.search(r"\bF_SETFD\s*,\s*0$", arguments):
        return "keep over exec" + INHERITED
    if re.search(r"\bF_SETFD\b", arguments):
        return "take over"
    return "lock" if re.search(r"\bF_(?:OFD_)?SETLKW?\b", arguments) else ""


def _operation(source, name, arguments, sources):
    """What the call is called in the page; "" for one that reaches nothing."""
    if name in ("mmap", "mmap64"):
        kinds = {"MAP_ANONYMOUS": "", "MAP_SHARED": "mmap shared", "MAP_PRIVATE": "mmap private"}
        return next((kind for flag, kind in kinds.items() if flag in arguments), "mmap")
    if name == "fcntl":
        return _of_fcntl(arguments)
    if name == "flock":
        return "lock"
    if name == "fopen":
        mode = re.findall(r'"(\w*)"', arguments)
        return name if mode and "e" in mode[-1] else name + INHERITED
    if name in ("dup", "dup2", "pipe"):
        return name + INHERITED
    if name in OPENING and name not in ("mkstemp", "shm_open"):
        return name if _closed_by_exec(source, arguments, sources) else name + INHERITED
    return "TextFile" if name == "text_file" else name


def _is_call(source, start, name):
    """No declaration, no method, nothing of another namespace than the C and the C++ library's."""
    before = source.code[max(0, start - 200) : start]
    if (source.name, name) in OWN_FUNCTIONS:
        return False
    if before.endswith("::"):
        return re.search(r"(\w*)(?:<\w*>)?::$", before)[1] in LIBRARIES
    if before.endswith((".", "->")):
        return name in STARTING
    if word := re.search(r"(\w+)\s+$", before):
        return word[1] in ("return", "else", "do", "case")
    return not re.search(r"\w[*&>]+ $", before)


def _find_in_c(source, sources, found):
    def note(position, operation):
        if operation:
            found.operations[source.name][source.function(position)][operation] += 1

    calls = {}
    for one in CALL.finditer(source.code):
        if _is_call(source, one.start(1), one[1]):
            calls[one.start(1)] = (one[1], one.end() - 1)
    for one in RAW.finditer(source.code):
        name = {"openat": "open", "renameat2": "rename"}.get(one[1], one[1])
        if name in OPENING + FILES + STARTING + ["mmap", "fcntl"]:
            calls[one.start()] = (name, source.code.index("(", one.start()))
    for one in TEXT_FILE.finditer(source.code):
        calls[one.start()] = ("text_file", one.end() - 1)
    for one in LOADED.finditer(source.code):
        arguments = source.arguments(one.start(2))
        through_pointer = re.search(r"\bRTLD_", arguments) and "(" not in arguments
        if through_pointer and one[1] not in ("dlopen", "dlmopen", "real_dlopen"):
            calls[one.start(1)] = ("dlopen", one.start(2))
    for start, (name, bracket) in sorted(calls.items()):
        note(start, _operation(source, name, source.arguments(bracket), sources))
    for one in STREAM.finditer(source.code):
        note(one.start(), one[1])


def _find_variables(source, constants, found):
    for one in READ_BY_NAME.finditer(source.text):
        found.variables[one[1]].append(source.name)
    for one in VARIABLE.finditer(source.text):
        if not NO_VARIABLES.search(one[1]):
            found.variables[one[1]].append(source.name)
    if source.name == "config/key.cpp":
        for one in SETTING.finditer(source.text):
            found.settings.add("CUSLICE_" + one[1].upper().replace("-", "_"))
    for one in READ_BY_CONSTANT.finditer(source.code):
        names = constants.get(one[1], set())
        for name in names:
            found.variables[name].append(source.name)
        # `variable` is the launcher's own word for it, whose callers are looked at.
        if not names and source.function(one.start()) != "variable":
            found.unknown.append(f"{source.name}:{source.line(one.start())}: getenv({one[1]}): which variable is that?")
    for one in PATH.finditer(source.text):
        found.paths[one[1]].append(source.name)


class PythonSites(ast.NodeVisitor):
    """Calls by their whole names, in the function that they are in."""

    NAMES = re.compile(r"(?:os|shutil|tempfile|subprocess|ctypes|fcntl)\.(?:open|mkdir|makedirs|exec\w*|mkdtemp|"
                       r"mkstemp|rmtree|which|run|Popen|CDLL|pipe|dup2?|unlink|remove|rename|replace|symlink|chmod|flock|"
                       r"lockf|Named\w+|Temporary\w+)$|^open$")

    def __init__(self, name, found):
        self.name, self.found, self.functions = name, found, []

    def visit_FunctionDef(self, node):
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()

    visit_ClassDef = visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Call(self, node):
        called = ast.unparse(node.func)
        if self.NAMES.search(called):
            self.found.operations[self.name][".".join(self.functions) or "-"][called] += 1
        if any(word.arg == "pass_fds" for word in node.keywords):
            self.found.operations[self.name][".".join(self.functions) or "-"]["pass_fds" + INHERITED] += 1
        if re.search(r"\benviron\.(?:get|pop|setdefault)$|\bgetenv$", called) and node.args:
            self._variable(node.args[0])
        self.generic_visit(node)

    def visit_Subscript(self, node):
        if re.search(r"\benviron$", ast.unparse(node.value)):
            self._variable(node.slice)
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, str) and VARIABLE.fullmatch(f'"{node.value}"'):
            self.found.variables[node.value].append(self.name)
        if isinstance(node.value, str) and PATH.fullmatch(f'"{node.value}"'):
            self.found.paths[node.value].append(self.name)

    def _variable(self, node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.found.variables[node.value].append(self.name)


def find(texts):
    """`texts`: what each file of the tree says, by its name. Only the product's are looked at."""
    found, sources = Found(), {}
    for name, text in texts.items():
        if not name.startswith(tuple(folder + "/" for folder in FOLDERS)) or not name.endswith(ENDINGS):
            continue
        if name.endswith(".py"):
            PythonSites(name, found).visit(ast.parse(text))
        else:
            sources[name] = Source(name, text)
    constants = collections.defaultdict(set)
    for source in sources.values():
        for one in re.finditer(r'\b(\w+)(?:\[\])?\s*(?:=|\{|\()\s*"([A-Z][A-Z0-9_]+)"', source.text):
            constants[one[1]].add(one[2])
    for source in sources.values():
        _find_in_c(source, sources, found)
        _find_variables(source, constants, found)
    return found
