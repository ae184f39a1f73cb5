# SPDX-License-Identifier: Apache-2.0
"""Commands of documents that commands.py does not run."""

# Programs that not every machine has, or lets do their work: what is tried first. A command that needs one is run where
# that ends with 0.
WHERE_IT_WORKS = {"man": (), "bwrap": ("--dev-bind", "/", "/", "true"), "runtime_fill_static": (), "pytest": ("--version",)}

RELEASE = "needs a release's files, which take minutes to build; scripts/release_check.sh installs and removes them"
ROOT = "changes this machine's packages; scripts/release_check.sh does it in a root of its own"
SYSTEM = "changes this machine, or an image; tests/stub/ does it in roots of its own"
PLOT = "needs vl-convert-python, a download of 30 MB; tests/plot/ draws the same where it is there"
BROWSER = "opens a browser; tests/plot/command_test.py tries it with a stand-in"
IMAGE = "needs a release's files; lab/release/image_test.py builds an image, loads it and runs the same in it"
DROP_IN = "writes a folder of this machine; lab/kubernetes/drop_in_test.py writes one elsewhere"
SLURM = "needs Slurm's daemons; lab/slurm/ runs them, with jobs like this one"
PYTEST = "needs pytest and a folder with tests; tests/python/ runs both with the plugin"
PACKAGES = "installs gigabytes of packages; lab/compat/page_test.py holds the page against the runs that were made"

CLUSTER = "needs a cluster; lab/kubernetes/ validates the manifests, and runs programs with what they say"

SYSTEMD = "changes this machine's services; tests/recipes/ has systemd-analyze verify read the units, and runs their commands"

SERVER = "needs a model server and a model, which was not tried; the page says so"
MODEL_SERVER = {
    "cuslice run --limit 40GiB -- vllm serve MODEL": SERVER,
    "cuslice run --limit 12GiB -- ollama serve": SERVER,
    "cuslice run --limit 8GiB -- llama-server -m MODEL.gguf -ngl 99": SERVER,
    "cuslice run --limit 30GiB -- python train.py": "needs a GPU of that size",
}

README = {
    "pip install .": "builds all of the product, and installs it",
    "scripts/run.sh": "builds all of the product, which is what is being tested here",
    "scripts/test.sh": "runs all tests, this one included",
}

# Page → exact command → why it can't be run. An entry that no command has is an error.
NOT_RUN = {
    "README.md": README,
    "README.zh-CN.md": README,
    "docs/administrators.md": {
        "cuslice install --system": SYSTEM,
        "cuslice install --system --root /srv/image": SYSTEM,
    },
    "docs/containers.md": {
        "docker run --gpus all -v /opt/cuslice:/opt/cuslice:ro -v /dev/shm/cuslice:/dev/shm/cuslice "
        "-e LD_PRELOAD=/opt/cuslice/lib/cuslice/libcuslice.so -e CUSLICE_LIMIT=4GiB IMAGE ./a.out":
            "needs Docker's daemon, an image and a GPU; tests/containers/ tries the same with runc and bwrap",
        "install -d -m 1777 /dev/shm/cuslice": "makes a folder of this machine",
        "cuslice cdi -o /etc/cdi/cuslice.json": "writes a file of this machine; tests/containers/cdi_test.py writes one elsewhere",
        "podman run --device nvidia.com/gpu=0 --device cuslice/slice=0.25 IMAGE ./a.out":
            "needs a GPU and an image; tests/containers/cdi_test.py has podman run a program without either",
        "docker run --device nvidia.com/gpu=0 --device cuslice/slice=0.25 IMAGE ./a.out": "needs Docker's daemon",
        "cp integrations/systemd/*.service /etc/systemd/system": SYSTEMD,
        "systemctl start slice@4GiB": SYSTEMD,
        "jupyter kernelspec install --user --name slice integrations/jupyter":
            "needs Jupyter; tests/recipes/ starts the kernel through jupyter_client where it is there",
    },
    "docs/sharing.md": {
        "cuslice top --nodes @slurm": "needs a job of Slurm; tests/cli/top_nodes_test.cpp has an srun of its own",
    },
    "docs/rules.md": {
        "install -D -m 644 integrations/systemd/user-dmem.conf /etc/systemd/system/user@.service.d/dmem.conf": SYSTEMD,
    },
    "docs/schedulers/kubernetes.md": {
        "integrations/kubernetes/drop-in.sh /opt/cuslice/current /usr/local/vgpu": DROP_IN,
        "helm install cuslice integrations/helm/cuslice --namespace cuslice --create-namespace "
        "--set image.repository=registry.example/cuslice --set image.tag=0.2.0": CLUSTER,
        "kubectl apply -f integrations/kubernetes/device-plugin-config.yaml": CLUSTER,
        "kubectl apply -f integrations/kubernetes/deployment.yaml": CLUSTER,
    },
    "docs/allocator.md": {
        "cuslice plot trace.csv --open": BROWSER,
        "cuslice plot trace.csv trace.csv.* -o memory.svg": PLOT,
    },
    "docs/schedulers/slurm.md": {
        "scripts/build.sh release cuslice_slurm": "builds the plugin, which lab/slurm/ tries",
        "install -D build/release/lib/cuslice/slurm/cuslice.so /opt/cuslice/lib/cuslice/slurm/cuslice.so":
            "the build makes the plugin where Slurm's headers are",
        "srun --gres=shard:1 ./a.out": SLURM,
        "sbatch --gres=shard:2 script.sh": SLURM,
        "salloc --gres=shard:1 srun ./a.out": SLURM,
        "srun --cuslice-limit=4GiB ./a.out": SLURM,
        "srun --gres=shard:2 --cuslice-fraction=0.25 ./a.out": SLURM,
        "sbatch --gres=shard:1 --cuslice-split=2 script.sh": SLURM,
        "srun --cuslice-limit=4 ./a.out": SLURM,
    },
    "docs/python.md": {
        "pytest --fake-gpus 4xh200": PYTEST,
        "pytest --fake-gpus 2xa100-40g,1xt4 -n 8": PYTEST,
    },
    "docs/tutorials/model-server.md": MODEL_SERVER,
    "docs/tutorials/model-server.zh-CN.md": MODEL_SERVER,
    "docs/tutorials/slurm.md": {
        "sinfo -o '%P %N %G'": SLURM,
        "srun --gres=shard:1 cuslice devices": SLURM,
        "srun --gres=shard:1 python3 hold.py 5000": SLURM,
        "srun --gres=shard:2 python3 hold.py 5000": SLURM,
        "srun -w n1 cuslice ps": SLURM,
    },
    "docs/tutorials/pytest.md": {
        "pytest --fake-gpus 4xh200": PYTEST,
        "pytest --fake-gpus 2xa100-40g,1xt4 -n 8": PYTEST,
    },
    "docs/results/compatibility/packages.md": {
        "scripts/compat.sh --page": PACKAGES,
        "scripts/compat.sh --page torch numba": PACKAGES,
    },
    "docs/results/compatibility/suites.md": {
        "cuslice run --fake 2xt4 --redirect-runtime=all -- python3 -m pytest "
        "-k 'not test_4_processes_2_subcomm' "
        "cupy_tests/cuda_tests/memory_hooks_tests "
        "cupy_tests/cuda_tests/test_{device,memory,memory_hook,pinned_memory}.py "
        "cupy_tests/cuda_tests/test_{stream,graph,runtime,nccl}.py": "CuPy and its tests are not here",
    },
    "docs/install.md": {
        "python3 -m venv ~/venv": RELEASE,
        "~/venv/bin/pip install .": "builds all of the product; lab/packaging/ tries what it says and packs",
        "~/venv/bin/cuslice demo": RELEASE,
        "podman load -i cuslice-*-oci-x86_64.tar": IMAGE,
        "podman run --rm cuslice:0.2.0 demo": IMAGE,
        "scripts/release/image.sh dist/cuslice-*-linux-\"$(uname -m)\".tar.gz": IMAGE,
        "scripts/release/image.sh --base registry.example/base:1 --archive cuslice.tar "
        "dist/cuslice-*-linux-\"$(uname -m)\".tar.gz": IMAGE,
        "~/venv/bin/pip install ./cuslice-*_\"$(uname -m)\".whl": RELEASE,
        "~/venv/bin/cuslice run --fake 1xt4 --limit 1GiB -- python3 program.py": RELEASE,
        "tar xf cuslice-*-linux-\"$(uname -m)\".tar.gz": RELEASE,
        "cuslice-*/bin/cuslice --version": RELEASE,
        "sudo dpkg -i cuslice_*_amd64.deb": ROOT,
        "sudo dpkg -r cuslice": ROOT,
        "cmake --install build/release --prefix /opt/cuslice": "tests/checks/installation.py installs the build",
        "cmake -S . -B build/aarch64 -G Ninja -DCMAKE_BUILD_TYPE=Release -DCUSLICE_TESTS=OFF "
        "-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc "
        "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ "
        "-DCMAKE_CROSSCOMPILING_EMULATOR=\"/usr/bin/qemu-aarch64-static;-L;/usr/aarch64-linux-gnu\"":
            "needs a cross compiler, and builds all of the product",
        "cmake --build build/aarch64": "as the line before it",
    },
}
