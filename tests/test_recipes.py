"""The recipes run, keep their promises and are what docs/recipes.md shows; `MetricTask` tunes and remembers."""

import ast
import atexit
import difflib
import importlib.util
import logging
import os
import re
import socket
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

import lightning as L
import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fbeta import MCC, Confusion, FBeta, Recall, SoftLoss, TangentLoss, tune
from fbeta.lightning import MetricTask
from rank_processes import end_rank, run_ranks

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "examples" / "recipes"
DOCUMENT = ROOT / "docs" / "recipes.md"

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


@cache
def recipe(name):
    spec = importlib.util.spec_from_file_location(f"recipe_{name}", RECIPES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same_weights(first, second, atol=1e-4):
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=atol, rtol=1e-3)


# ---- the recipes


@pytest.mark.parametrize("name", ["plain_pytorch", "mixed_precision", "lightning_task"])
def test_trained_for_f2_is_better_at_half(name):
    without, *others = recipe(name).main().values()
    for value in others:
        assert 0.7 < value < 1
        assert value > without + 0.05


def test_micro_batches_are_the_whole_batch():
    module = recipe("gradient_accumulation")
    train, test = module.load()
    parts, counted = module.with_fbeta(train)
    whole, wanted = module.with_fbeta(train, part=64)
    same_weights(parts, whole)
    torch.testing.assert_close(counted.state_dict(), wanted.state_dict())
    assert module.f2(parts, test) > module.f2(module.without(train), test) + 0.05
    equal, counted = module.with_equal_parts(train)
    once, wanted = module.with_equal_parts(train, k=1)
    same_weights(equal, once)
    torch.testing.assert_close(counted.state_dict(), wanted.state_dict())


def test_the_populations_rate_keeps_half_right():
    bce, told, both, misled = recipe("balanced_sampler").main().values()
    for half, called, best in (told, both):
        assert best - half < 0.05
        assert called == pytest.approx(0.1, abs=0.03)
    for half, called, best in (bce, misled):
        assert best - half > 0.08
        assert called > 0.15


def test_hugging_face():
    module = recipe("huggingface")
    train, test = module.load()
    with tempfile.TemporaryDirectory() as folder:
        without = module.without(train, test, folder).evaluate()["eval_f2"]
        ours = module.with_fbeta(train, test, folder)
        before = {name: value.clone() for name, value in ours.loss.state_dict().items()}
        assert ours.evaluate()["eval_f2"] > max(0.5, without)
        torch.testing.assert_close(ours.loss.state_dict(), before)  # evaluation counts nothing
        parts = module.with_loss_func(train, test, folder)
    # four micro-batches, three in the last step of an epoch; not weights, for Adam blows rounding up in those
    # that decide nothing (a bias of attention's keys)
    torch.testing.assert_close(logits_of(parts, test), logits_of(ours, test), atol=2e-3, rtol=1e-3)
    told = next(c.loss for c in parts.callback_handler.callbacks if isinstance(c, module.Announce))
    torch.testing.assert_close(told.running.counts, ours.loss.running.counts)


def logits_of(trained, rows):
    x = torch.tensor([row["input_ids"] for row in rows])
    with torch.no_grad():
        return trained.model.eval()(x).logits


def change_of_weights(folder, batch):
    """What a few steps of plain descent, which forgives no wrong factor, change; all 64 rows are a step."""
    module = recipe("huggingface")
    start = module.network().state_dict()
    with pytest.MonkeyPatch.context() as patch:
        plain = {"optim": "sgd", "max_grad_norm": 0.0, "use_cpu": True}
        if "RANK" in os.environ:
            plain["ddp_backend"] = "gloo"
        patch.setattr(module, "settings", partial(module.settings, batch=batch, **plain))
        trained = module.with_loss_func(module.load()[0][:64], module.load()[1], folder, parts=1)
    return {name: value - start[name] for name, value in trained.model.state_dict().items()}


def hugging_face_rank(rank, world, folder, port):
    torch.set_num_threads(1)
    where = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1"}
    os.environ |= {k: str(v) for k, v in where.items()} | {"MASTER_PORT": str(port)}
    torch.save(change_of_weights(folder, batch=64 // world), f"{folder}/rank{rank}.pt")
    end_rank()


@pytest.mark.slow
@pytest.mark.xdist_group("ranks")
def test_hugging_face_ranks_are_one_process():
    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        run_ranks(hugging_face_rank, 2, folder, port)
        got = [torch.load(Path(folder) / f"rank{r}.pt") for r in range(2)]
        wanted = change_of_weights(folder, batch=64)
    torch.testing.assert_close(got[0], got[1])
    assert wanted["classifier.bias"].abs().max() > 1e-4
    torch.testing.assert_close(got[0], wanted, atol=1e-6, rtol=1e-2)


# ---- the document


def functions(path):
    text = path.read_text()
    return {
        node.name: [line for line in ast.get_source_segment(text, node).splitlines() if line]
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }


def difference(path):
    """The lines of `without` and `with_fbeta`, from the first after the signature, marked as a diff marks them."""
    known = functions(path)
    bodies = []
    for name in ("without", "with_fbeta"):
        lines = known[name]
        start = next(i for i, line in enumerate(lines) if line.endswith(":")) + 1
        bodies.append([line.removeprefix("    ") for line in lines[start:]])
    return "\n".join(list(difflib.unified_diff(*bodies, n=99, lineterm=""))[3:])


def blocks():
    for section in DOCUMENT.read_text().split("\n## ")[1:]:
        path = ROOT / "docs" / re.search(r"\]\((\.\./examples/recipes/\w+\.py)\)", section).group(1)
        for language, block in re.findall(r"```(\w+)\n(.*?)```", section, re.S):
            yield path.resolve(), language, block


def test_every_recipe_is_in_the_document_and_every_block_in_its_recipe():
    assert {path for path, _, _ in blocks()} == set(RECIPES.glob("*.py"))
    for path, language, block in blocks():
        if language == "diff":
            assert block.rstrip("\n") == difference(path), f"{path.name}:\n{difference(path)}"
        else:
            assert language == "python"
            assert block in path.read_text(), f"{path.name} has no\n{block}"
    shown = [path for path, language, _ in blocks() if language == "diff"]
    assert len(shown) == len(set(shown)) == len(list(RECIPES.glob("*.py")))


def test_links_of_the_document():
    for link in re.findall(r"\]\(([^)#]+)\)", DOCUMENT.read_text()):
        assert link.startswith("http") or (DOCUMENT.parent / link).exists(), link
    assert "(docs/recipes.md)" in (ROOT / "README.md").read_text()


# ---- MetricTask


def cancer():
    """Is a tumour malignant? Two features, standardised, so that the classes overlap."""
    x, benign = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(0)) / x.std(0)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = torch.tensor(x[order][:, [4, 9]]).float(), torch.tensor(1 - benign[order]).float()
    return TensorDataset(x[:300], y[:300]), TensorDataset(x[300:], y[300:])


def linear(outputs=1):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, outputs), nn.Flatten(0) if outputs == 1 else nn.Identity())


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.05)


def trainer(folder=None, **options):
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
    options = {"max_epochs": 3, "enable_checkpointing": folder is not None} | options
    return L.Trainer(accelerator="cpu", default_root_dir=folder, **quiet, **{"devices": 1} | options)


def loaders(train, validation):
    torch.manual_seed(0)
    return DataLoader(train, batch_size=50, shuffle=True), DataLoader(validation, batch_size=64)


def cut_of(task, rows, metric):
    with torch.no_grad():
        return tune(task.score(task(rows.tensors[0])), rows.tensors[1], metric)


def test_the_cut_is_the_exact_one():
    train, validation = cancer()
    task, loop = MetricTask(linear(), "fbeta:beta=2", prevalence=0.37, optimizer=adam), trainer()
    loop.fit(task, *loaders(train, validation))
    best = cut_of(task, validation, FBeta(2))
    assert task.cut.item() == best.value != 0
    logged = loop.callback_metrics
    assert logged["val_fbeta_2_tuned"].item() == pytest.approx(best.score, abs=1e-6)
    with torch.no_grad():
        z, y = task(validation.tensors[0]), validation.tensors[1]
    assert logged["val_fbeta_2"].item() == pytest.approx(
        float(FBeta(2)(Confusion.from_scores(z, y, cut=0.0))), abs=1e-6
    )
    assert 0.6 < logged["val_fbeta_2"].item() <= logged["val_fbeta_2_tuned"].item() < 1
    assert logged["val_loss"].item() == pytest.approx(float(task.loss.eval()(z, y)), rel=1e-5)
    assert {"train_loss", "train_fbeta_2"} <= set(logged)
    (score, decision), *rest = loop.predict(task, loaders(train, validation)[1])
    torch.testing.assert_close(score, z[:64])
    assert sum(p.decision.sum() for p in [*rest, rest[0]._replace(decision=decision)]) == best.n_positive


@pytest.mark.filterwarnings("ignore:The dirpath has changed:UserWarning")  # a resumed run in another folder
def test_a_checkpoint_keeps_cut_and_counts(tmp_path):
    train, validation = cancer()
    task, loop = (MetricTask(linear(), FBeta(2), prevalence=torch.tensor(0.37), optimizer=adam), trainer(tmp_path))
    loop.fit(task, *loaders(train, validation))
    path = loop.checkpoint_callback.best_model_path
    twin = MetricTask.load_from_checkpoint(path, model=linear())
    assert twin.cut.item() == task.cut.item() != 0
    assert twin.metric == FBeta(2)
    assert twin.loss.operating_point.total > 0
    torch.testing.assert_close(twin.state_dict(), task.state_dict())
    # a resumed run is the run that was not interrupted
    straight = MetricTask(linear(), FBeta(2), prevalence=torch.tensor(0.37), optimizer=adam)
    data = DataLoader(train, batch_size=50), DataLoader(validation, batch_size=64)
    trainer(max_epochs=4).fit(straight, *data)
    half = MetricTask(linear(), FBeta(2), prevalence=torch.tensor(0.37), optimizer=adam)
    first = trainer(tmp_path / "half", max_epochs=2)
    first.fit(half, *data)
    resumed = MetricTask(linear(), FBeta(2), prevalence=torch.tensor(0.37), optimizer=adam)
    last = trainer(tmp_path / "last", max_epochs=4)
    last.fit(resumed, *data, ckpt_path=first.checkpoint_callback.best_model_path)
    torch.testing.assert_close(resumed.state_dict(), straight.state_dict())


def test_a_metric_of_ones_own_is_named_again(tmp_path):
    def mcc(tp, fp, fn, tn):  # not the metric that the name would bring back
        return tp / (tp + fp + fn)

    train, validation = cancer()
    task, loop = MetricTask(linear(), mcc, prevalence=0.37), trainer(tmp_path, max_epochs=1)
    loop.fit(task, *loaders(train, validation))
    path = loop.checkpoint_callback.best_model_path
    assert "metric" not in task.hparams
    assert MetricTask.load_from_checkpoint(path, model=linear(), metric=mcc).cut == task.cut
    with pytest.raises(ValueError, match=r"needs a metric.*load_from_checkpoint\(path, model=…, metric=…\)"):
        MetricTask.load_from_checkpoint(path, model=linear())


def test_validation_alone_tunes_but_changes_no_loss():
    train, validation = cancer()
    task = MetricTask(linear(), FBeta(2), TangentLoss(FBeta(2), prevalence=0.37, counts="given"), optimizer=adam)
    trainer(max_epochs=1).fit(task, *loaders(train, validation))
    point = task.loss.operating_point
    with torch.no_grad():
        wanted = Confusion.from_scores(task(validation.tensors[0]), validation.tensors[1], cut=0.0)
    assert float(point.tpr) == pytest.approx(float(wanted.tpr))  # validation feeds a loss that asks for it
    before = {name: value.clone() for name, value in task.loss.state_dict().items()}
    task.cut.fill_(99.0)
    (logged,) = trainer().validate(task, DataLoader(train, batch_size=64), verbose=False)
    assert task.cut.item() == cut_of(task, train, FBeta(2)).value
    torch.testing.assert_close(task.loss.state_dict(), before)
    # a test applies the cut and leaves it
    task.cut.fill_(-99.0)
    (logged,) = trainer().test(task, DataLoader(validation, batch_size=64), verbose=False)
    assert task.cut.item() == -99
    rate = validation.tensors[1].mean().item()
    assert logged["test_fbeta_2_tuned"] == pytest.approx(5 * rate / (4 * rate + 1), abs=1e-5)  # all positive


def test_sanity_check_leaves_the_cut():
    class Early(L.Callback):
        def on_sanity_check_end(self, trainer, task):
            self.cut = task.cut.item()

    train, validation = cancer()
    early, task = Early(), MetricTask(linear(), FBeta(2), prevalence=0.37)
    trainer(callbacks=[early], max_epochs=1).fit(task, *loaders(train, validation))
    assert early.cut == 0
    assert task.cut.item() != 0


def test_two_softmax_columns():
    train, validation = (TensorDataset(r.tensors[0], r.tensors[1].long()) for r in cancer())
    task = MetricTask(linear(2), MCC(), prevalence=0.37, task="softmax2", optimizer=adam)
    trainer().fit(task, *loaders(train, validation))
    assert task.cut.item() == cut_of(task, validation, MCC()).value


def test_a_cut_of_infinity_calls_nothing_positive():
    task = MetricTask(torch.nn.Flatten(0), "fbeta:beta=2", prevalence=0.1)
    task.cut.fill_(torch.inf)
    assert not task.decide(torch.tensor([0.0, torch.inf])).any()


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_labels(average):
    pixels, digit = load_digits(return_X_y=True)
    x = torch.tensor(pixels / 16).float()
    y = torch.tensor(np.stack([digit == 8, digit % 2 == 0, digit > 20], axis=1)).float()  # the last never
    train, validation = TensorDataset(x[:900], y[:900]), TensorDataset(x[900:], y[900:])
    options = {"prevalence": [0.1, 0.5, 0.01], "task": "multilabel", "num_labels": 3, "average": average}
    torch.manual_seed(0)
    task, loop = MetricTask(nn.Linear(64, 3), FBeta(1), optimizer=adam, **options), trainer()
    loop.fit(task, *loaders(train, validation))
    with torch.no_grad():
        z = task(validation.tensors[0])
    if average == "micro":
        assert task.cut.item() == tune(z.flatten(), y[900:].flatten(), FBeta(1)).value
    else:
        for k in range(2):
            assert task.cut[k].item() == tune(z[:, k], y[900:, k], FBeta(1)).value
        assert task.cut[2] == 0  # a label without positives has no best cut
        scores = [tune(z[:, k], y[900:, k], FBeta(1)).score for k in range(2)]
        empty = float(FBeta(1)(Confusion.from_scores(z[:, 2], y[900:, 2], cut=0.0)))
        assert loop.callback_metrics["val_fbeta_1_tuned"].item() == pytest.approx((sum(scores) + empty) / 3, abs=1e-6)
    decided = torch.cat([p.decision for p in loop.predict(task, DataLoader(validation, batch_size=500))])
    assert torch.equal(decided, z.double() >= task.cut)


def test_weights_and_ignored_rows():
    x, y = cancer()[1].tensors
    y, w = y.clone(), torch.rand(len(y), generator=torch.Generator().manual_seed(0))
    y[::3] = -1
    task = MetricTask(linear(), FBeta(2), prevalence=0.37, ignore_index=-1)
    (logged,) = trainer().validate(task, DataLoader(TensorDataset(x, y, w), batch_size=64), verbose=False)
    kept = y >= 0
    with torch.no_grad():
        best = tune(task(x)[kept], y[kept], FBeta(2), w[kept])
    assert task.cut.item() == best.value
    assert logged["val_fbeta_2_tuned"] == pytest.approx(best.score, abs=1e-6)


def test_accumulated_batches_are_whole_batches():
    train, validation = cancer()
    found = []
    for size, parts in ((60, 1), (20, 3)):
        task = MetricTask(linear(), FBeta(2), prevalence=0.37, optimizer=adam)
        loop = trainer(accumulate_grad_batches=parts)
        loop.fit(task, DataLoader(train, batch_size=size), DataLoader(validation, batch_size=64))
        found.append(task)
    same_weights(*found)
    torch.testing.assert_close(found[0].loss.state_dict(), found[1].loss.state_dict())
    assert found[0].loss.operating_point.total > 300


def test_a_set_loss_is_validated_as_a_whole():
    train, validation = cancer()
    task, loop = MetricTask(linear(), FBeta(1), SoftLoss(FBeta(1), memory=200), optimizer=adam), trainer()
    loop.fit(task, *loaders(train, validation))
    with torch.no_grad():
        whole = task.loss.eval()(task(validation.tensors[0]), validation.tensors[1])
    assert loop.callback_metrics["val_loss"].item() == pytest.approx(whole.item(), rel=1e-5)


def test_nan_leaves_the_cut_and_is_logged():
    task = MetricTask(linear(), FBeta(2), prevalence=0.37)
    task.cut.fill_(0.25)
    with torch.no_grad():
        task.model[0].weight.fill_(torch.nan)
    (logged,) = trainer().validate(task, DataLoader(cancer()[1], batch_size=64), verbose=False)
    assert task.cut == 0.25
    assert np.isnan(logged["val_fbeta_2"])


def test_the_cut_is_never_rounded():
    task = MetricTask(nn.Flatten(0), "mcc", prevalence=0.5)
    task.cut.fill_(1 + 1e-9)
    assert task.half().bfloat16().cut.item() == 1 + 1e-9
    # neighbouring scores in single precision, the cut between them in double
    low, high = torch.tensor(1.0), torch.nextafter(torch.tensor(1.0), torch.tensor(2.0))
    task.cut.fill_((low.double() + high.double()) / 2)
    assert task.decide(torch.stack([low, high])).tolist() == [False, True]


def test_bad_input():
    with pytest.raises(ValueError, match="prevalence would shape a loss"):
        MetricTask(linear(), FBeta(1), TangentLoss(FBeta(1)), prevalence=0.1)
    with pytest.raises(ValueError, match="classes are decided by the largest score"):
        MetricTask(linear(), FBeta(1), task="multiclass", num_labels=3)
    with pytest.raises(ValueError, match="one number"):
        MetricTask(linear(), FBeta(1), reduction="none")
    with pytest.raises(ValueError, match="needs a metric"):
        MetricTask(linear())
    with pytest.raises(ValueError, match="nothing|recall|Recall"):
        MetricTask(linear(), Recall())
    with pytest.raises(TypeError, match="batches \\(inputs, target\\)"):
        MetricTask(linear(), FBeta(1)).validation_step(torch.zeros(2, 2))


def fresh(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_without_lightning_it_says_what_to_install():
    done = fresh("import sys; sys.modules |= {'lightning': None, 'pytorch_lightning': None}; import fbeta.lightning")
    assert "ImportError: fbeta.lightning needs PyTorch and Lightning: pip install 'fbeta[lightning]'" in done.stderr


@pytest.mark.slow
def test_the_older_name_of_lightning_serves():
    done = fresh(
        "import sys; sys.modules['lightning'] = None; import fbeta.lightning as f, pytorch_lightning as p;"
        "print(issubclass(f.MetricTask, p.LightningModule))"
    )
    assert done.stdout.strip() == "True", done.stderr


# ---- ranks


class Keep(L.Callback):
    """Write what each rank has at the end of validation."""

    def __init__(self, folder):
        self.folder = folder

    def setup(self, trainer, task, stage):
        # Lightning leaves the group's threads running; a rank that ends first may then abort.
        atexit.register(lambda: torch.distributed.is_initialized() and torch.distributed.destroy_process_group())

    def on_validation_end(self, trainer, task):
        if not trainer.sanity_checking:
            logged = {name: x.clone() for name, x in trainer.callback_metrics.items() if name != "train_loss"}
            state = {name: value.clone() for name, value in task.state_dict().items()}
            torch.save((state, logged), f"{self.folder}/rank{trainer.global_rank}.pt")


class Uneven(L.LightningDataModule):
    """Rank 0 validates four batches, rank 1 a single one."""

    def val_dataloader(self):
        x, y = cancer()[1].tensors
        mine = slice(0, 200) if self.trainer.global_rank == 0 else slice(200, 230)
        return DataLoader(TensorDataset(x[mine], y[mine]), batch_size=50)


@pytest.mark.slow
@pytest.mark.xdist_group("ranks")
def test_two_ranks_agree_on_the_cut_of_all_rows(tmp_path):
    """269 validation rows on two ranks: the sampler repeats one, and the cut does not count it twice."""
    train, validation = cancer()
    task = MetricTask(linear(), FBeta(2), prevalence=0.37, optimizer=adam)
    loop = trainer(devices=2, strategy="ddp_spawn", callbacks=[Keep(tmp_path)])
    loop.fit(task, *loaders(train, validation))
    got = [torch.load(tmp_path / f"rank{r}.pt") for r in range(2)]
    torch.testing.assert_close(got[0], got[1], rtol=0, atol=0)
    state, logged = got[0]
    assert "train_fbeta_2" in logged
    twin = MetricTask(linear(), FBeta(2), prevalence=0.37)
    twin.load_state_dict(state)
    best = cut_of(twin, validation, FBeta(2))
    # Each rank scores rows in batches of its own, which may round the last digit of single precision otherwise.
    assert state["cut"].item() == pytest.approx(best.value, rel=2e-7) != 0
    assert logged["val_fbeta_2_tuned"].item() == pytest.approx(best.score, abs=1e-6)
    assert float(twin.loss.operating_point.total) > 0


@pytest.mark.slow
@pytest.mark.xdist_group("ranks")
def test_ranks_with_unequally_many_rows_do_not_hang(tmp_path):
    task = MetricTask(linear(), FBeta(2), prevalence=0.37)
    loop = trainer(devices=2, strategy="ddp_spawn", callbacks=[Keep(tmp_path)], use_distributed_sampler=False)
    loop.validate(task, datamodule=Uneven(), verbose=False)
    got = [torch.load(tmp_path / f"rank{r}.pt") for r in range(2)]
    torch.testing.assert_close(got[0], got[1], rtol=0, atol=0)
    x, y = (t[:230] for t in cancer()[1].tensors)
    assert got[0][0]["cut"].item() == cut_of(task, TensorDataset(x, y), FBeta(2)).value
