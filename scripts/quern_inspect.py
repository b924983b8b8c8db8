#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Asks a program with an inspector (docs/inspector.md).

usage: quern_inspect.py URL list [QUERY]            entities, 'index:generation' and name, all or those of a query
       quern_inspect.py URL get ENTITY              the entity as JSON
       quern_inspect.py URL set ENTITY PATH VALUE   sets a field, such as Position.x
       quern_inspect.py URL watch ENTITY PATH ...   prints the fields as CSV, ten times a second, until interrupted;
                                                    --count N stops after N lines, --rate N sets the lines per second

URL is the address that the program prints.
"""

import csv
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request


class Failed(Exception):
    pass


def ask(url, method, point, **arguments):
    """Sends a request and returns the answer."""
    address = f"{url.rstrip('/')}/api/{point}?{urllib.parse.urlencode(arguments)}"
    request = urllib.request.Request(address, method=method, data=b"" if method == "POST" else None)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise Failed(json.load(error).get("error", str(error))) from error
    except OSError as error:
        raise Failed(f"{url} does not answer: {error}") from error


def list_entities(url, query=None):
    """Yields all entities, or those that match a query, in pages."""
    at = 0
    while at is not None:
        if query is None:
            page = ask(url, "GET", "entities", cursor=at, limit=500)
            at = page["next_cursor"]
        else:
            page = ask(url, "GET", "entities", query=query, offset=at, limit=500)
            at = at + 500 if at + 500 < page["count"] else None
        yield from page["entities"]


def field(entity, path):
    """Returns the value of a path such as Position.x in the answer of 'entity'."""
    value = entity["values"]["components"]
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else value


def watch(url, entity, paths, count, rate):
    table = csv.writer(sys.stdout)
    table.writerow(["frame"] + paths)
    while count != 0:
        answer = ask(url, "GET", "entity", entity=entity)
        table.writerow([answer["frame"]] + [field(answer, path) for path in paths])
        sys.stdout.flush()
        count -= 1
        time.sleep(1 / rate)


def option(arguments, name, otherwise):
    """Removes an option with a number from the arguments and returns the number."""
    if name not in arguments:
        return otherwise
    at = arguments.index(name)
    number = int(arguments[at + 1])
    del arguments[at:at + 2]
    return number


def main(arguments):
    count, rate = option(arguments, "--count", -1), option(arguments, "--rate", 10)
    url, command, rest = arguments[0], arguments[1], arguments[2:]
    if command == "list" and len(rest) <= 1:
        for entity in list_entities(url, *rest):
            print(entity["entity"], entity.get("name") or "")
    elif command == "get" and len(rest) == 1:
        print(json.dumps(ask(url, "GET", "entity", entity=rest[0]), indent=2))
    elif command == "set" and len(rest) == 3:
        ask(url, "POST", "set", entity=rest[0], path=rest[1], value=rest[2])
    elif command == "watch" and len(rest) >= 2:
        watch(url, rest[0], rest[1:], count, rate)
    else:
        raise IndexError


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (IndexError, ValueError):
        sys.exit(__doc__)
    except Failed as failure:
        sys.exit(f"quern_inspect: {failure}")
    except (KeyboardInterrupt, BrokenPipeError):
        pass
