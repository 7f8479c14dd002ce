#!/bin/sh
# Everything only a GPU can confirm, once, from the repository root: doctor, golden outputs and pairs on the device,
# the compute sanitizer over the golden inputs, and the benchmark. Usage: sh tests/gpu/device_check.sh OUTPUT_FOLDER
set -u
out=${1:?usage: sh tests/gpu/device_check.sh OUTPUT_FOLDER}
mkdir -p "$out"
python -m resispec_core.cli.main doctor --json > "$out/doctor.json" 2>&1 || python -c "
import json; from resispec_core.gpu.doctor import report; print(json.dumps(report()))" > "$out/doctor.json"
status=0
timeout 120 python -m pytest -n 0 -q tests/gpu/test_golden.py tests/gpu/test_device.py > "$out/tests.txt" 2>&1 || status=1
if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck synccheck; do
        timeout 90 compute-sanitizer --tool "$tool" --error-exitcode 9 \
            python -m pytest -n 0 -q tests/gpu/test_golden.py -k "test_device and float32" \
            > "$out/$tool.txt" 2>&1 || status=1
    done
else
    echo "compute-sanitizer is not installed" > "$out/memcheck.txt"
fi
timeout 300 python -m resispec_core.gpu.bench --json "$out/bench.json" > "$out/bench.txt" 2>&1 || status=1
exit $status
