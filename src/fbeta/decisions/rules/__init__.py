"""Rules for a cut, one per file; a new file in this folder is found by the name of its class."""

import importlib
import pkgutil

from fbeta.decisions.rules.constant import Constant
from fbeta.decisions.rules.exact import Exact
from fbeta.decisions.rules.plugin import Plugin
from fbeta.decisions.rules.rule import Rule, as_rule, names
from fbeta.decisions.rules.shrunk import Shrunk

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Constant", "Exact", "Plugin", "Rule", "Shrunk", "as_rule", "names"]
