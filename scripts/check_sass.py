#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the machine instructions of the library's CUDA kernels, and refuses FP64 arithmetic where there must be none.

Usage: check_sass.py <library or program with CUDA code> [cuobjdump]

Prints for each CUDA-specialised kernel the number of FP64, FP32, integer, conversion and memory instructions. The residue and
reduction kernels may have no FP64 arithmetic at all; the reconstruction kernels no more than alpha and beta of their entries take. GPUs with few FP64 units are fast only if that holds.
"""
import collections
import re
import shutil
import subprocess
import sys

CLASSES = {
    "FP64": r"D(ADD|MUL|FMA|SETP|MNMX|MMA)\b",
    "conversion": r"(I2F|F2I|F2F|I2I|I2FP|F2FP|FRND)\b",
    "FP32": r"F(ADD|MUL|FMA|SETP|MNMX|SEL|CHK|SWZADD|SET)\b|MUFU\b",
    "tensor": r"(IGMMA|IMMA|HGMMA|HMMA)\b",
    "memory": r"(LD|ST|LDG|STG|LDS|STS|LDC|ULDC|LDL|STL|LDGSTS|ATOM|ATOMG|ATOMS|RED|REDG|UTMALDG)\b",
    "integer": r"U?(IMAD|IADD3|IADD|IDP|ISETP|IMNMX|LEA|LOP3|SHF|SHL|SHR|PRMT|SEL|VIADD\w*|VIMNMX\w*|VOTE|FLO|POPC|BREV|IABS|MOV|REDUX)\b",
}
NO_FP64 = ("ChunkStatisticsKernel", "JoinChunksKernel", "QuantizeKernel", "BoundMaximaKernel", "ResiduesKernel", "multiply_kernel", "add_part_kernel",
           "ReduceKernel")
# What alpha and beta of the four entries of a thread take.
MOST_FP64 = {"ReconstructKernel": 24}
KERNELS = NO_FP64 + tuple(MOST_FP64)


def classify(instruction):
    opcode = re.sub(r"^@!?U?P\w+\s+", "", instruction).split()[0]
    if ".F64" in opcode and re.match(CLASSES["conversion"], opcode):
        return "FP64"
    for name, pattern in CLASSES.items():
        if re.match(pattern, opcode):
            return name
    return "other"


def kernels(sass):
    """name, architecture and [(address, instruction)] of every function"""
    name, architecture, next_architecture, code = None, "", "", []
    for line in sass.splitlines():
        match = re.search(r"arch = (sm_\w+)", line)
        if match:
            next_architecture = match.group(1)
        match = re.search(r"Function : (\S+)", line)
        if match:
            if name:
                yield name, architecture, code
            name, architecture, code = match.group(1), next_architecture, []
        match = re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", line)
        if match:
            code.append((int(match.group(1), 16), match.group(2)))
    if name:
        yield name, architecture, code


def innermost_loops(code):
    loops = []
    for address, instruction in code:
        match = re.search(r"\bBRA\b.*?\b0x([0-9a-f]+)", instruction)
        # A branch to itself pads the end of a function.
        if match and int(match.group(1), 16) < address:
            loops.append((int(match.group(1), 16), address))
    return [a for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    cuobjdump = sys.argv[2] if len(sys.argv) == 3 else shutil.which("cuobjdump")
    if not cuobjdump:
        sys.exit("cuobjdump was not found; give its path as the second argument.")
    sass = subprocess.run([cuobjdump, "-sass", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    columns = [*CLASSES, "other"]
    print(f"{'kernel':42} {'arch':8}" + "".join(f"{c:>12}" for c in columns) + f"{'FP64 in loops':>16}")
    seen, failures = set(), []
    for name, architecture, code in kernels(sass):
        kernel = next((k for k in KERNELS if re.search(rf"\d+{k}", name)), None)
        if not kernel:
            continue
        # The template arguments tell the variants apart.
        arguments = re.findall(r"L(?:[ib]|NS\w*?E)(\d+)E", name.split(kernel, 1)[1]) if f"{kernel}I" in name else []
        label = kernel + ("<" + ", ".join(arguments) + ">" if arguments else "")
        if (label, architecture) in seen:
            continue
        seen.add((label, architecture))
        counts = collections.Counter(classify(i) for _, i in code)
        loops = innermost_loops(code)
        in_loops = sum(classify(i) == "FP64" for a, i in code if any(lo <= a <= hi for lo, hi in loops))
        print(f"{label:42} {architecture:8}" + "".join(f"{counts[c]:12d}" for c in columns) + f"{in_loops:16d}")
        if kernel in NO_FP64 and counts["FP64"]:
            failures.append(f"{label} has {counts['FP64']} FP64 instructions")
        if counts["FP64"] > MOST_FP64.get(kernel, counts["FP64"]):
            failures.append(f"{label} has {counts['FP64']} FP64 instructions, more than {MOST_FP64[kernel]}")
    missing = [k for k in KERNELS if not any(label.startswith(k) for label, _ in seen)]
    failures += [f"no kernel {k} in {sys.argv[1]}" for k in missing]
    if failures:
        sys.exit("\n".join(failures))
    print("no FP64 arithmetic in the residue, reduction and reconstruction loops")


if __name__ == "__main__":
    main()
