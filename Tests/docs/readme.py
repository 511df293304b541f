"""Makes a guide of README: its blocks in C and Python become programs that run. guides.py tests this guide too."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COMMANDS = (
    "make demo    # two screens, one stream\n"
    'make test    # the tests, without the long ones that `make help` lists; ends with "N passed, N failed"\n'
)
"""The commands of README. The part `demo` runs the first one."""

C = """/* readme.c: the lines of README, with what they need around them. */
#include <stdio.h>
#include <stdlib.h>
#include <usher/usher.h>

int main(void) {
  const char *license_url = getenv("LICENCE"), *ssm_url = getenv("SSM"), *token = getenv("TOKEN");
  static const uint8_t key_id[16];
  uint8_t payload[128];
  size_t size = sizeof payload;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *screen = NULL;
  usher_playback *playback = NULL;
  usher_response *licence = NULL;
  int32_t status = usher_clearkey_request(key_id, 1, payload, &size);
  if (status) return 1;
  {
%s
  }
  printf("C: %%s\\n", usher_status_name(status));
  return status != USHER_OK;
}
"""

PYTHON = '''"""readme.py: the lines of README, with what they need around them."""

import os

import usher

license_url, ssm_url, token = os.environ["LICENCE"], os.environ["SSM"], os.environ["TOKEN"]
payload = usher.clear_key_request([bytes(16)])


def decode(licence: usher.License) -> None:
    print(f"Python: {len(licence.clear_keys())} key")


%s'''

GUIDE = """```c
{c}```

```python
{python}```

```sh
cc readme.c -lusher -o readme
./readme
python readme.py
journal
```

```text
C: USHER_OK
Python: 1 key
 1 … setup … 200 …
 2 … license clearkey … 200 …
 3 … teardown … 200 …
 4 … setup … 200 …
 6 … teardown … 200 …
```
"""


def guide() -> str:
    """Returns README as a guide. Raises ValueError if README has other code blocks than this test knows."""
    found = re.findall(r"^```(\S*)\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    if [language for language, _ in found] != ["sh", "c", "python"] or found[0][1] != COMMANDS:
        raise ValueError(f"README has code blocks that no test runs: {[language for language, _ in found]}")
    return GUIDE.format(c=C % textwrap.indent(found[1][1].rstrip(), "    "), python=PYTHON % found[2][1])
