#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders integrations/helm/cuslice with Helm: it is valid, and the DaemonSet of integrations/kubernetes:

  chart_test.py SOURCE

Needs Helm, as the package helm-python-sdk has it, kubernetes-validate and PyYAML, which scripts/setup.sh tests puts into
build/pytest; 77, skipped, without them.
"""

import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [
    str(SOURCE / "scripts/release"),
    *map(str, (SOURCE / "build/pytest").glob("lib/python3*/site-packages")),
]
try:
    import helm_python as helm
    import kubernetes_validate
    import yaml
except ImportError as missing:
    print(f"SKIPPED: {missing}: scripts/setup.sh tests")
    sys.exit(77)
import chart  # noqa: E402

VERSION = kubernetes_validate.latest_version()


def rendered(values=None, path=chart.CHART, name="cuslice"):
    """The chart's one manifest."""
    with helm.Chart.load(str(path)) as loaded:
        loaded.validate_schema(values or {})
        made = loaded.render(values or {}, name=name, namespace="gpus")
    documents = [
        one for name, text in made.items() if name.endswith(".yaml") for one in yaml.safe_load_all(text) if one
    ]
    (document,) = documents
    kubernetes_validate.validate(document, VERSION, strict=True)
    return document


def plain():
    """The DaemonSet that is there for those without Helm."""
    text = (SOURCE / "integrations/kubernetes/daemonset.yaml").read_text()
    (document,) = [one for one in yaml.safe_load_all(text) if one["kind"] == "DaemonSet"]
    return document


class Chart(unittest.TestCase):
    def test_its_pods_are_those_of_the_plain_manifest(self):
        made, known = rendered(), plain()
        self.assertEqual(made["spec"]["template"]["spec"], known["spec"]["template"]["spec"])
        self.assertEqual(made["metadata"]["namespace"], "gpus")
        labels = made["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(made["spec"]["selector"]["matchLabels"].items(), labels.items())

    def test_values_arrive(self):
        values = {
            "image": {"repository": "registry.example/gpu/cuslice", "tag": "0.2.0", "pullPolicy": "Always"},
            "imagePullSecrets": [{"name": "registry"}],
            "installation": "/srv/cuslice",
            "ledgers": "/run/ledgers",
            "nodeSelector": {"nvidia.com/gpu.present": None, "gpu": "yes"},  # Helm adds maps to the chart's own
            "tolerations": [],
            "affinity": {"nodeAffinity": {}},
            "priorityClassName": "system-node-critical",
            "podAnnotations": {"note": "true"},
            "podLabels": {"team": "ml"},
            "resources": {"limits": {"memory": "32Mi"}},
        }
        made = rendered(values)
        pod = made["spec"]["template"]["spec"]
        for container in pod["initContainers"] + pod["containers"]:
            self.assertEqual(container["image"], "registry.example/gpu/cuslice:0.2.0")
            self.assertEqual(container["imagePullPolicy"], "Always")
            self.assertEqual(container["resources"]["limits"], {"memory": "32Mi"})
        hosts = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
        self.assertEqual(hosts, {"installation": "/srv/cuslice", "ledgers": "/run/ledgers"})
        self.assertEqual(pod["nodeSelector"], {"gpu": "yes"})
        for key in ("imagePullSecrets", "affinity", "priorityClassName"):
            self.assertEqual(pod[key], values[key], key)
        self.assertNotIn("tolerations", pod)
        metadata = made["spec"]["template"]["metadata"]
        self.assertEqual((metadata["annotations"], metadata["labels"]["team"]), ({"note": "true"}, "ml"))

    def test_each_value_has_an_effect_and_a_rule(self):
        with helm.Chart.load(str(chart.CHART)) as loaded:
            values = set(loaded.values)
        templates = "".join(path.read_text() for path in (chart.CHART / "templates").iterdir())
        for name in values:
            self.assertIn(f".Values.{name}", templates)
        for wrong in (
            {"imagee": {}},
            {"installation": "opt"},
            {"image": {"repository": ""}},
            {"image": {"pullPolicy": "No"}},
        ):
            with self.subTest(wrong), self.assertRaises(helm.HelmError):
                rendered(wrong)

    def test_a_packed_chart_takes_the_image_of_its_version(self):
        with tempfile.TemporaryDirectory() as folder:
            made = rendered(path=chart.pack(pathlib.Path(folder), "1.2.3"), name="x" * 53)
        self.assertEqual(made["spec"]["template"]["spec"]["containers"][0]["image"], "cuslice:1.2.3")
        self.assertEqual(made["metadata"]["labels"]["helm.sh/chart"], "cuslice-1.2.3")

    def test_its_notes_are_of_the_folders_that_it_was_given(self):
        with helm.Chart.load(str(chart.CHART)) as loaded:
            made = loaded.render({"ledgers": "/run/ledgers"}, name="cuslice", namespace="gpus")
        (notes,) = [text for name, text in made.items() if name.endswith("NOTES.txt")]
        self.assertIn("/opt/cuslice/current/lib/cuslice/libcuslice.so", notes)
        self.assertIn("{name: ledgers, mountPath: /run/ledgers}", notes)


if __name__ == "__main__":
    unittest.main(verbosity=2)
