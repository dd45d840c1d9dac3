"""`python -m replaydrift.model script.py [args]`: your own CUDA-graph script with no GPU, and what its captures froze."""

from __future__ import annotations

import argparse
import builtins
import linecache
import math
import sys
import threading
import types
from pathlib import Path
from typing import Any

STRICT = 3


def main(arguments: list[str]) -> int:
    """The exit code: the script's own; 3 where `--strict` was given, the script ended well and something was found."""
    options = _options(arguments)
    if options.json and not Path(options.json).resolve().parent.is_dir():
        return _refuse(f"cannot write {options.json!r}: its folder does not exist. Expected a file in a folder that does")
    try:
        code = _code(options.script)
    except OSError as error:
        return _refuse(f"cannot read {options.script!r}: {error.strerror}. Expected the path of a Python script, or - for standard input")
    except (SyntaxError, ValueError):
        sys.excepthook(*_exception(2))
        return 1
    try:
        import torch
    except ImportError as error:
        return _refuse(f"cannot import torch ({error}). Expected 2.11 to 2.15: python -m pip install torch")
    from replaydrift import model

    try:
        model.install(options.scale)
    except model.ModelRefused as error:
        return _refuse(str(error))
    from replaydrift.model import observer, report

    watching = observer.watch()
    status = _run(code, options.script, options.arguments)
    sys.stdout.flush()
    findings = watching.findings
    print("\n" + report.as_text(findings, ended=status == 0), end="", file=sys.stderr, flush=True)
    if options.json:
        facts = {"script": options.script, "torch": torch.__version__, "exit_code": status, "model": model.info()}
        try:
            _write_whole(Path(options.json), report.as_json(findings, facts))
        except OSError as error:
            return _refuse(f"cannot write {options.json!r}: {error.strerror}. The findings stand above")
    return STRICT if options.strict and len(findings) and status == 0 else status


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m replaydrift.model", description=__doc__)
    parser.add_argument("--strict", action="store_true", help=f"exit with {STRICT} where something was found")
    parser.add_argument("--json", metavar="FILE", help="write the findings to this file too")
    parser.add_argument("--scale", type=_scale, default=1.0, help="let tensors count as so many times larger, in assumed durations")
    parser.add_argument("script", help="a Python script, run as __main__; - for one on standard input")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script finds in sys.argv")
    return parser.parse_args(arguments)


def _scale(text: str) -> float:
    """The factor that `--scale` names."""
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0 < scale < math.inf:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number above 0, such as 1000")
    return scale


def _code(script: str) -> types.CodeType:
    """The script, compiled; the lines of one from standard input are kept, so that the report can show them."""
    if script != "-":
        return compile(Path(script).read_bytes(), str(Path(script).resolve()), "exec")
    text = sys.stdin.read()
    linecache.cache["<stdin>"] = (len(text), None, text.splitlines(keepends=True), "<stdin>")
    return compile(text, "<stdin>", "exec")


def _run(code: types.CodeType, script: str, arguments: list[str]) -> int:
    """Run the script as `python script.py` would, and return its exit code."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=code.co_filename, __builtins__=builtins, __spec__=None)
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    sys.path[0] = "" if script == "-" else str(Path(script).resolve().parent)
    try:
        exec(code, module.__dict__)  # noqa: S102 - running the user's script is what this is for
        status = 0
    except SystemExit as stop:
        status = _status(stop.code)
    except BaseException as error:  # noqa: BLE001 - shown as Python would show it
        sys.excepthook(*_exception(1))
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    return status


def _status(code: Any) -> int:
    """The exit code that `sys.exit(code)` stands for."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _exception(own_frames: int) -> Any:
    """The exception under way as sys.excepthook takes it, without that many frames of this module."""
    kind, error, trace = sys.exc_info()
    for _ in range(own_frames):
        trace = trace.tb_next if trace is not None else None
    if error is not None:
        error.__traceback__ = trace
    return kind, error, trace


def _write_whole(path: Path, text: str) -> None:
    """Write the file by way of another, so that nobody ever finds half of it."""
    half = path.with_name(f".{path.name}.half")
    half.write_text(text, encoding="utf-8")
    half.replace(path)


def _refuse(message: str) -> int:
    print(f"replaydrift.model: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
