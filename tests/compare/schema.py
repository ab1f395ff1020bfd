#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The definitions "figures" and "rank" of docs/compare.schema.json are what src/compare/columns.c
says.

    schema.py COLUMNS [--write]

COLUMNS is the program made of columns.c beside this file; --write brings the file up to date.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

SCHEMA = Path(__file__).resolve().parents[2] / "docs/compare.schema.json"
TYPES = {"string": {"type": "string"}, "integer": {"$ref": "#/definitions/count"},
         "number": {"type": "number", "minimum": 0}}


def objects_of(lines):
    """"" and the name of each inner object: (keys with their types, those that are always there)."""
    objects = {"": ({}, [])}
    for path, kind, known in map(str.split, lines):
        inner, _, key = path.rpartition(".")
        if inner and inner not in objects:
            objects[""][0][inner] = None
        if inner and known == "always" and inner not in objects[""][1]:
            objects[""][1].append(inner)
        properties, required = objects.setdefault(inner, ({}, []))
        properties[key] = TYPES[kind]
        if known == "always":
            required.append(key)
    return objects


def block_of(objects):
    """The text between the bracket behind a definition's name and the other one."""
    properties, required = objects[""]
    lines = []
    for key, schema in properties.items():
        if schema is None:
            inner, always = objects[key]
            schema = {"type": "object", "required": always, "properties": inner}
            if not always:
                del schema["required"]
        lines.append(f"        {json.dumps(key)}: {json.dumps(schema)}")
    return ('      "type": "object",\n'
            f'      "required": {json.dumps(required)},\n'
            '      "properties": {\n' + ",\n".join(lines) + "\n      }\n")


def main():
    printed = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout
    wanted, lines = SCHEMA.read_text(), {}
    for line in printed.splitlines():
        definition, column = line.split(maxsplit=1)
        lines.setdefault(definition, []).append(column)
    for definition, of in lines.items():
        wanted = re.sub(rf'(    "{definition}": {{\n)(?:      .*\n)*', lambda found, of=of: found[1] +
                        block_of(objects_of(of)), wanted, count=1)
    if "--write" in sys.argv:
        SCHEMA.write_text(wanted)
    json.loads(wanted)
    assert wanted == SCHEMA.read_text(), \
        f"{SCHEMA} is not what the table of columns says: run this once with --write"


main()
