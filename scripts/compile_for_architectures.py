#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the library's kernels for GPUs other than the one that a CUDA build is for.

Usage: compile_for_architectures.py <build folder> <number of the architecture>...

Takes the sources of the library whose objects hold kernels of its own, and their definitions and include paths, from a
finished build that was configured with CMAKE_EXPORT_COMPILE_COMMANDS; runs nvcc for the device code alone, without
optimisation, on all cores. Nothing is linked and nothing is kept.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time


def has_kernels(object_file):
    symbols = subprocess.run(["nm", object_file], check=True, capture_output=True, text=True).stdout
    return any("__device_stub__" in line and "KokkosOzaki" in line for line in symbols.splitlines())


def device_flags(arguments):
    """What matters to device code; nvcc_wrapper's own flags and warnings of the host compiler are left out."""
    flags, rest = [], iter(arguments[1:])
    for argument in rest:
        if argument == "-isystem":
            flags += [argument, next(rest)]
        elif argument.startswith(("-D", "-I", "-std=", "-O")) or argument == "-expt-extended-lambda":
            flags.append(argument)
        elif argument == "-fopenmp":
            flags += ["-Xcompiler", argument]
        elif argument in ("-o", "-MF", "-MT"):
            next(rest)
    return flags


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    nvcc = shutil.which("nvcc") or sys.exit("nvcc was not found.")
    build = pathlib.Path(sys.argv[1])
    jobs = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        arguments = shlex.split(entry["command"])
        output = arguments[arguments.index("-o") + 1]
        object_file = pathlib.Path(entry["directory"]) / output
        if not output.startswith("CMakeFiles/kokkosozaki.dir/") or not has_kernels(object_file):
            continue
        jobs += [(entry, arguments, architecture) for architecture in sys.argv[2:]]
    if not jobs:
        sys.exit(f"no object with kernels in {build}: is it a finished CUDA build?")

    def compile_one(job):
        entry, arguments, architecture = job
        start = time.monotonic()
        subprocess.run([nvcc, "-x", "cu", "-fatbin", "-gencode", f"arch=compute_{architecture},code=sm_{architecture}",
                        "-Xcicc", "-O0", "-Xptxas", "-O0", "-Werror", "all-warnings", *device_flags(arguments), "-o",
                        os.devnull, entry["file"]], check=True, cwd=entry["directory"])
        print(f"sm_{architecture}: {pathlib.Path(entry['file']).name} in {time.monotonic() - start:.0f} s", flush=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, jobs))


if __name__ == "__main__":
    main()
