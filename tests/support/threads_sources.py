"""The files of csrc/ that run parallel loops, for programs without Python."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
THREADS = [ROOT / "csrc" / name for name in ("threads.cc", "thread_count.cc", "openmp.cc")]
FLAGS = ["-std=c++17", f"-I{ROOT / 'include'}", f"-I{ROOT / 'csrc'}", "-pthread"]
