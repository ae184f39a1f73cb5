#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the forms in .github/ISSUE_TEMPLATE against what GitHub takes, and what they and the template of pull requests
name against the sources.

  issue_forms_test.py SOURCE

GitHub shows no form that it can't read, and says so to nobody. Needs PyYAML; 77, skipped, without it.
"""

import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
FORMS = sorted((SOURCE / ".github/ISSUE_TEMPLATE").glob("*.yml"))
PULL_REQUEST = SOURCE / ".github/PULL_REQUEST_TEMPLATE.md"
sys.path[:0] = map(str, (SOURCE / "build/pytest").glob("lib/python3*/site-packages"))

try:
    import yaml
except ImportError as missing:
    print(f"SKIPPED: {missing}: scripts/setup.sh tests")
    sys.exit(77)

# Kind of an element → its attributes; those that it must have come first, up to None.
ATTRIBUTES = {
    "markdown": ["value", None],
    "input": ["label", None, "description", "placeholder", "value"],
    "textarea": ["label", None, "description", "placeholder", "value", "render"],
    "dropdown": ["label", "options", None, "description", "multiple", "default"],
    "checkboxes": ["label", "options", None, "description"],
}


class Forms(unittest.TestCase):
    def each(self):
        for path in FORMS:
            with self.subTest(path.name):
                yield path, yaml.safe_load(path.read_text())

    def test_there_is_one_for_a_result_and_one_for_a_bug(self):
        self.assertEqual([path.stem for path in FORMS], ["bug", "gpu-result"])

    def test_each_has_what_a_form_needs_and_no_more(self):
        for _, form in self.each():
            self.assertLessEqual({"name", "description", "body"}, set(form))
            self.assertLessEqual(set(form), {"name", "description", "title", "labels", "body"})
            self.assertTrue(any(element["type"] != "markdown" for element in form["body"]))

    def test_each_element_has_the_attributes_of_its_kind(self):
        for _, form in self.each():
            for element in form["body"]:
                names = ATTRIBUTES[element["type"]]
                needed = names[: names.index(None)]
                self.assertLessEqual(set(needed), set(element["attributes"]))
                self.assertLessEqual(set(element["attributes"]), set(names))
                self.assertLessEqual(set(element), {"type", "id", "attributes", "validations"})
                for option in element["attributes"].get("options", []):
                    self.assertIsInstance(option, dict if element["type"] == "checkboxes" else str)

    def test_names_and_labels_are_given_once(self):
        for _, form in self.each():
            questions = [element for element in form["body"] if element["type"] != "markdown"]
            identifiers = [element["id"] for element in questions]
            labels = [element["attributes"]["label"] for element in questions]
            self.assertEqual(len(set(identifiers)), len(identifiers))
            self.assertEqual(len(set(labels)), len(labels))
            for identifier in identifiers:
                self.assertRegex(identifier, r"^[A-Za-z0-9_-]+$")

    def test_the_documents_that_they_name_are_there(self):
        named = [name for path in FORMS for name in re.findall(r"\b(?:docs/[\w/-]+|[A-Z]+)\.md\b", path.read_text())]
        self.assertLessEqual({"SECURITY.md", "docs/results/README.md", "docs/troubleshooting.md"}, set(named))
        for name in named:
            self.assertTrue((SOURCE / name).is_file(), name)

    def test_a_pull_request_is_asked_for_what_is_there(self):
        text = PULL_REQUEST.read_text()
        self.assertIn("`cuslice doctor`", text)
        named = re.findall(r"(?:\.ci|scripts|docs)/[\w./-]*\w|\bdocs/|\b[A-Z]+\.md\b", text)
        self.assertLessEqual({"CONTRIBUTING.md", "CHANGELOG.md", ".ci/run", "scripts/ci_full.sh"}, set(named))
        for name in named:
            self.assertTrue((SOURCE / name).exists(), name)

    def test_a_result_is_called_as_gpu_check_calls_it(self):
        (form,) = [form for path, form in self.each() if path.stem == "gpu-result"]
        said = " ".join((SOURCE / "scripts/gpu_check.sh").read_text().replace("gpu_check.sh: ", "").split())
        self.assertIn(f'an issue of the kind "{form["name"]}"', said)
        (record,) = [element for element in form["body"] if element.get("id") == "record"]
        self.assertTrue(record["validations"]["required"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
