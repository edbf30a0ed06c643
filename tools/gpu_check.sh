#!/usr/bin/env bash
# Checks the cuda backend on a machine with an NVIDIA GPU and PyTorch, and measures it. Needs no
# network: python3 must hold PyTorch, scikit-build-core, nanobind and what mosstalk depends on;
# what is missing is taken from a folder of wheels.
#
#   tools/gpu_check.sh [--smoke] [--out DIR] [--wheels DIR] [--device D]
#
# --smoke   small models on PyTorch's CPU device, to try the script where there is no GPU
# --out     folder for results (default: $OUT, else ./gpu_check)
# --wheels  folder of wheels of packages that python3 lacks
# --device  default: cuda
#
# Writes summary.json, devices.json, tests.xml, kv-cache.json, delay.json, codec.json and
# benchmark.json. Every step runs, whatever the others gave; the status is 0 if all passed. Takes
# less than eight minutes.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${OUT:-gpu_check} wheels="" device=cuda smoke=""
while [ $# -gt 0 ]; do
  case $1 in
    --smoke) smoke=--smoke device=cuda:cpu; shift ;;
    --out) out=$2; shift 2 ;;
    --wheels) wheels=$2; shift 2 ;;
    --device) device=$2; shift 2 ;;
    *) echo "unknown argument $1; see the head of $0" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$out/log.txt
: >"$log"
export PYTHONPATH=$work/site PYTHONUNBUFFERED=1 MOSSTALK_CACHE=$work/cache
[ -z "$smoke" ] || export OMP_NUM_THREADS=1

patience=1 # times the limits: a busy machine without a GPU is slow
[ -z "$smoke" ] || patience=5
failed=0
steps=""
# step NAME SECONDS FILE COMMAND...: runs it with standard output to FILE, and notes how it went.
step() {
  local name=$1 limit=$(($2 * patience)) file=$3 started=$SECONDS status
  shift 3
  echo "== $name" | tee -a "$log"
  timeout "$limit" "$@" >"$file" 2>>"$log"
  status=$?
  [ $status -eq 0 ] || failed=1
  echo "   status $status, $((SECONDS - started)) s"
  steps+="${steps:+, }\"$name\": {\"status\": $status, \"seconds\": $((SECONDS - started))}"
}

build() {
  local options=(--no-index --no-deps --no-compile --target "$site")
  [ -z "$wheels" ] || python3 -m pip install "${options[@]}" "$wheels"/*.whl || return
  python3 -m pip install "${options[@]}" --no-build-isolation .
}
export -f build
export wheels site=$work/site

tests="tests/compute tests/models tests/codec/test_codec_golden.py"
[ -z "$smoke" ] || tests="tests/compute/test_cuda_ops.py tests/compute/test_cuda_device.py"
golden=tests/golden/checkpoints

step build 200 "$work/build.txt" bash -c build
cat "$work/build.txt" >>"$log"
step devices 60 "$out/devices.json" python3 -m mosstalk devices --json
# Warnings of other libraries' versions are not what is tested here.
# shellcheck disable=SC2086
step tests 200 "$work/tests.txt" python3 -m pytest $tests -k cuda -o filterwarnings=default \
  -p no:cacheprovider --junitxml "$out/tests.xml" -rs
tail -n 40 "$work/tests.txt" >>"$log"
step kv-cache 60 "$out/kv-cache.json" \
  python3 -m mosstalk parity kv-cache --model $golden/nano_b --backend "$device" --json
step delay 60 "$out/delay.json" \
  python3 -m mosstalk parity kv-cache --model $golden/delay_small --backend "$device" --json
step codec 90 "$out/codec.json" python3 -m mosstalk parity codec \
  --model $golden/codec_nano_narrow --backend "$device" --frames 1,40 --json
# shellcheck disable=SC2086
step benchmark 300 "$work/benchmark.txt" \
  python3 -m benchmarks.device --device "$device" --out "$out/benchmark.json" $smoke
cat "$work/benchmark.txt" >>"$log"

printf '{"passed": %s, "seconds": %d, "device": "%s", "steps": {%s}}\n' \
  "$([ $failed -eq 0 ] && echo true || echo false)" "$SECONDS" "$device" "$steps" \
  >"$out/summary.json"
cat "$out/summary.json"
exit $failed
