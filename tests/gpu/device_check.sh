#!/bin/sh
# Everything only a GPU can confirm, once, from the repository root: doctor, golden outputs and pairs on the device,
# the compute sanitizer over the golden inputs, and the benchmark. Usage: sh tests/gpu/device_check.sh OUTPUT_FOLDER
# Exit status: 0 all passed, 1 something failed, 3 there is no GPU path here (nothing was confirmed).
set -u
out=${1:?usage: sh tests/gpu/device_check.sh OUTPUT_FOLDER}
python=${PYTHON:-python}
mkdir -p "$out"
resispec() { "$python" -c "from resispec_core.cli.main import main; main()" "$@"; }
resispec doctor --json > "$out/doctor.json" || exit 1
if ! grep -q '"gpu_path": true' "$out/doctor.json"; then
    resispec doctor | tail -n 1
    exit 3
fi
status=0
timeout 120 "$python" -m pytest -n 0 -q tests/gpu/test_golden.py tests/gpu/test_device.py > "$out/tests.txt" 2>&1 || status=1
if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck synccheck; do
        timeout 90 compute-sanitizer --tool "$tool" --error-exitcode 9 \
            "$python" -m pytest -n 0 -q tests/gpu/test_golden.py -k "test_device and float32" \
            > "$out/$tool.txt" 2>&1 || status=1
    done
else
    echo "compute-sanitizer is not installed" > "$out/memcheck.txt"
fi
timeout 300 "$python" -c "from resispec_core.cli.main import main; main()" speed --kernels --out "$out/bench.json" \
    > "$out/bench.txt" 2>&1 || status=1
exit $status
