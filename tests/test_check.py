"""The check: what is news, what explains it, and the exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from making import attempt, environment, record

from replaydrift.cli import cli
from replaydrift.errors import ReplaydriftError
from replaydrift.explanations import Explanation, ExplanationError, read_explanations, read_reasons
from replaydrift.store import Store

OLD, MID, NEW = "2.11.0+cu130", "2.13.0+cu130", "2.14.1+cu130"
CASES = """
def eager():
    yield "replay", 1


def bug():
    yield "replay", 1


def fix():
    yield "replay", 1
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own: one group of two cases, an empty store, no explanations."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "g.py").write_text(CASES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(release: str, bug: object, fix: object = "correct", machine: str = "h200") -> None:
    """Store both cases of one release."""
    Store(Path("results")).write(environment(release, machine), [record(bug, case="g/bug"), record(fix, case="g/fix", kind="fix")])


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output of the command line."""
    result = CliRunner().invoke(cli, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_one_release_is_no_upgrade(home: Path) -> None:
    """A slip of the keyboard must not pass as "nothing changed": both sides have to differ."""
    put(MID, "wrong")
    code, text = run("check", "2.13.0", "2.13.0+cu130")
    assert code == 2
    assert "OLD and NEW are both torch 2.13.0+cu130: expected two releases" in text


def test_nothing_changed(home: Path) -> None:
    """Two releases that behave alike pass."""
    put(MID, "wrong")
    put(NEW, "wrong")
    code, text = run("check", "2.13.0", "2.14.1")
    assert code == 0
    assert "Nothing unexplained changed." in text
    assert "2 case(s) behave the same" in text


def test_what_neither_release_ran_is_not_the_same(home: Path) -> None:
    """Cases that both releases skip are counted apart; where there are no others, nobody can tell."""
    put(MID, "skipped:needs one thing", "correct")
    put(NEW, "skipped:needs another", "correct")
    code, text = run("check", "2.13.0", "2.14.1")
    assert (code, "1 case(s) behave the same. 1 skipped on both: nothing is known of them." in text) == (0, True)
    assert json.loads(run("check", "2.13.0", "2.14.1", "--json")[1])["skipped"] == ["g/bug"]
    page = run("check", "2.13.0", "2.14.1", "--guide")[1]
    assert "Of 2 cases 1 behave the same on both releases. *Skipped on both, so that nothing is known:* `g` (1)." in page
    assert "- `g/bug`: skipped needs one thing → needs another" in page
    code, text = run("check", "2.13.0", "2.14.1", "--cases", "g/bug")
    assert (code, "Cannot tell: both releases skip all of these cases." in text) == (2, True)
    assert "**Nobody can tell: both releases skip all of these cases.**" in run("check", "2.13.0", "2.14.1", "--cases", "g/bug", "--guide")[1]


def test_a_guide_says_what_it_cannot(home: Path) -> None:
    """Where a case is missing, or flickers now, the answer begins with that or names it."""
    put(MID, "wrong", "correct")
    Store(Path("results")).write(environment(NEW), [record("correct", "wrong", "wrong", case="g/fix", kind="fix")])
    page = run("check", "2.13.0", "2.14.1", "--guide")[1]
    assert "**Nobody can tell yet: of one case nothing can be said. Of the others: yes: " in page
    assert "*Flaky, so that nothing is said of a change:* `g/fix`." in page


def test_explanations_that_are_named_must_be_there(home: Path) -> None:
    """A slip in the name of the file must not read as "nothing is explained"."""
    put(MID, "wrong")
    put(NEW, "correct")
    code, text = run("check", "2.13.0", "2.14.1", "--explanations", "typo.toml")
    assert (code, "no file 'typo.toml'" in text) == (2, True)


def test_silent_wrongness_is_first_and_fails(home: Path) -> None:
    """A fix that became silently wrong is printed before a case that merely raises now, both sides with values."""
    put(MID, "wrong")
    put(NEW, "raised:E: text", attempt("wrong", 7))
    code, text = run("check", "2.13.0", "2.14.1")
    assert code == 1
    assert text.index("Silently wrong now") < text.index("Was silently wrong, raises now")
    assert "wrong: 7 (3 of 3)" in text
    assert "replaydrift show g/fix" in text


def test_missing_results_cannot_be_told(home: Path) -> None:
    """A case that one release lacks is neither passed nor failed: exit code 2."""
    put(MID, "wrong")
    Store(Path("results")).write(environment(NEW), [record("wrong", case="g/bug")])
    code, text = run("check", "2.13.0", "2.14.1")
    assert code == 2
    assert "g/fix" in text
    assert run("check", "2.13.0", "2.14.1", "--cases", "g/bug")[0] == 0


def test_what_only_the_old_release_skips_is_no_doubt(home: Path) -> None:
    """A case that asks for what the old release did not have is listed and leaves nothing undecided; the other way round it does."""
    put(MID, "wrong", "skipped:needs a new option")
    put(NEW, "wrong", "correct")
    code, text = run("check", "2.13.0", "2.14.1")
    assert code == 0
    assert "skipped:needs a new option → correct" in text
    put(MID, "wrong", "correct")
    put(NEW, "wrong", "skipped:no compiler")
    assert run("check", "2.13.0", "2.14.1")[0] == 2


def test_flaky_is_listed_and_passes(home: Path) -> None:
    """Attempts that disagree are listed with their rates, and fail nothing."""
    put(MID, "wrong")
    store = Store(Path("results"))
    store.write(environment(NEW), [record("wrong", "correct", "wrong", case="g/bug"), record("correct", case="g/fix", kind="fix")])
    code, text = run("check", "2.13.0", "2.14.1")
    assert code == 0
    assert "wrong 2 of 3, correct 1 of 3" in text


def test_accept_then_pass_then_rot(home: Path) -> None:
    """`accept` drafts the entry, the check passes with it, and fails again once the change is gone."""
    put(MID, "raised:E: text")
    put(NEW, "correct")
    assert run("check", "2.13.0", "2.14.1")[0] == 1
    assert run("accept", "2.13.0", "2.14.1", "--why", "registered on first use", "--link", "https://example.org/1")[0] == 0
    code, text = run("check", "2.13.0", "2.14.1")
    assert code == 0
    assert "Why: registered on first use https://example.org/1" in text
    put(NEW, "raised:E: text")
    code, text = run("check", "2.13.0", "2.14.1")
    assert code == 1
    assert "Explanations that match nothing any more" in text


def test_advice_belongs_to_its_cause(home: Path) -> None:
    """`accept` drafts title and advice as empty lines; what one entry says of a cause holds for all with the same why, in text and JSON."""
    put(MID, "raised:E: text", "raised:E: text")
    put(NEW, "correct", "correct")
    assert run("accept", "2.13.0", "2.14.1", "--why", "one cause")[0] == 0
    path = Path("explanations.toml")
    assert path.read_text().count('title = ""\nadvice = ""\n') == 2
    assert "What to do" not in run("check", "2.13.0", "2.14.1")[1]
    path.write_text(path.read_text().replace('title = ""\nadvice = ""', 'title = "It works"\nadvice = "Use it."', 1))
    assert {(one.case, one.title, one.advice) for one in read_explanations(path)} == {
        ("g/bug", "It works", "Use it."),
        ("g/fix", "It works", "Use it."),
    }
    assert run("check", "2.13.0", "2.14.1")[1].count("What to do: Use it.") == 1
    tree = json.loads(run("check", "2.13.0", "2.14.1", "--json")[1])
    assert [entry["advice"] for finding in tree["findings"] for entry in finding["explained_by"]] == ["Use it."] * 2


def test_a_guide_of_the_command_line(home: Path) -> None:
    """`check --guide` prints the page, and exits as the check does."""
    put(MID, "raised:E: text")
    put(NEW, "correct")
    code, text = run("check", "2.13.0", "2.14.1", "--guide")
    assert code == 1
    assert text.startswith("<!-- Generated")
    assert "- **`g/bug`** (since 2.14.1)\n  - **Open:** nobody has explained this yet." in text
    assert "g/bug" not in run("check", "2.13.0", "2.14.1", "--guide", "--cases", "g/fix")[1]


def test_an_entry_speaks_of_the_version_not_of_the_build(home: Path) -> None:
    """A default wheel is named without its build, so the entry holds for a CPU wheel of the same version too."""
    put(MID, "raised:E: text")
    put(NEW, "correct")
    assert run("accept", "2.13.0", "2.14.1", "--why", "known", "--any-machine")[0] == 0
    (entry,) = read_explanations(Path("explanations.toml"))
    assert (entry.start, entry.end, entry.machine) == ("2.13.0", "2.14.1", "*")
    put("2.13.0+cpu", "raised:E: text", machine="other")
    put("2.14.1+cpu", "correct", machine="other")
    assert run("check", "2.13.0", "2.14.1", "--machine", "other")[0] == 0


def test_accept_needs_a_reason(home: Path) -> None:
    """Nobody is asked where there is no terminal, and no entry is written without a reason."""
    put(MID, "raised:E: text")
    put(NEW, "correct")
    with pytest.raises(ExplanationError, match="--why"):
        run("accept", "2.13.0", "2.14.1")
    assert not Path("explanations.toml").exists()
    with pytest.raises(ExplanationError, match="no unexplained change of g/fix.*unexplained are g/bug"):
        run("accept", "2.13.0", "2.14.1", "--case", "g/fix", "--why", "x")


def entry(**more: str) -> Explanation:
    """An explanation of g/bug."""
    base = Explanation("g/bug", "h200", MID, NEW, "fixed", "raised:E: two", "correct", "why", "")
    return replace(base, **more)


def write(*entries: Explanation) -> None:
    """Write explanations.toml."""
    keys = {"start": "from", "end": "to"}
    text = ""
    for one in entries:
        text += "[[change]]\n" + "".join(f"{keys.get(k, k)} = {json.dumps(getattr(one, k))}\n" for k in one.__slots__)
    Path("explanations.toml").write_text(text)


def test_steps_of_a_wide_range_add_up(home: Path) -> None:
    """An error reworded in one release and gone in the next is explained by both entries together, and by neither alone."""
    put(OLD, "raised:E: one")
    put(MID, "raised:E: two")
    put(NEW, "correct")
    reworded = entry(start=OLD, end=MID, change="error-changed", before="raised:E: one", after="raised:E: two")
    write(entry(), reworded)
    assert run("check", "2.11.0", "2.14.1")[0] == 0
    for alone in (entry(), reworded):
        write(alone)
        assert run("check", "2.11.0", "2.14.1")[0] == 1


def test_an_explanation_outside_the_range_does_not_count(home: Path) -> None:
    """An entry covers a check only when its own step lies within the range asked for, on its own machine."""
    put(MID, "raised:E: two")
    put(NEW, "correct")
    for other in (entry(start=OLD, end=MID), entry(machine="b200"), entry(before="raised:E: else")):
        write(other)
        assert run("check", "2.13.0", "2.14.1")[0] == 1
    write(entry(machine="*"))
    assert run("check", "2.13.0", "2.14.1")[0] == 0


def test_forms_for_programs(home: Path) -> None:
    """JSON, JUnit and Markdown say the same as the text, with what a case printed escaped."""
    put(MID, "correct")
    put(NEW, attempt("raised:E: <script>|*x*"), attempt("wrong", 7))
    code, text = run("check", "2.13.0", "2.14.1", "--json")
    tree = json.loads(text)
    assert code == tree["exit_code"] == 1
    assert [finding["change"] for finding in tree["findings"]] == ["now-wrong", "now-raises"]
    suite = ET.fromstring(run("check", "2.13.0", "2.14.1", "--junit")[1])
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    assert len(suite.findall("testcase/failure")) == 2
    markdown = run("check", "2.13.0", "2.14.1", "--markdown")[1]
    assert "\\<script\\>\\|\\*x\\*" in markdown


def test_which_machine_and_release(home: Path) -> None:
    """Several machines, or a release that is not there, are errors that list what there is."""
    put(MID, "wrong")
    put(MID, "wrong", machine="b200")
    with pytest.raises(ReplaydriftError, match=r"2 machines \(b200, h200\)"):
        run("check", "2.13.0", "2.14.1")
    with pytest.raises(ReplaydriftError, match=r"2\.13\.0\+cu130"):
        run("check", "2.13.0", "2.14.1", "--machine", "h200")


def test_reasons_hold_from_their_release_on(tmp_path: Path) -> None:
    """A difference from a source is explained from a release on, for that source alone; a broken entry is an error with its number."""
    path = tmp_path / "explanations.toml"
    path.write_text('[[difference]]\ncase = "g/bug"\nsource = "page"\nsince = "2.13.0"\nwhy = "because"\n')
    (reason,) = read_reasons(path)
    assert reason.speaks_of("g/bug", "page", "2.13.0+cpu")
    assert not reason.speaks_of("g/bug", "page", "2.12.1+cu130")
    assert not reason.speaks_of("g/bug", "seed", "2.13.0")
    path.write_text('[[difference]]\ncase = "g/bug"\nwhy = "because"\n')
    with pytest.raises(ExplanationError, match="difference 1: has the keys case, why"):
        read_reasons(path)


WHOLE = '[[change]]\ncase="c"\nmachine="m"\nfrom="1"\nto="2"\nchange="x"\nbefore="b"\nafter="a"\nwhy="w"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[change]\n", "cannot be read as TOML"),
        ('[[change]]\ncase = "g/bug"\n', "no 'machine'"),
        ('[[change]]\ncase="c"\nmachine="m"\nfrom="1"\nto="2"\nchange="x"\nbefore="b"\nafter="a"\nwhy=" "\n', "'why' is empty"),
        (
            '[[change]]\ncase="c"\nmachine="m"\nfrom="1"\nto="2"\nchange="x"\nbefore="b"\nafter="a"\nwhy="w"\nnote="n"\n',
            "unknown key 'note'",
        ),
        (f"{WHOLE}advice=1\n", "'advice' is int: expected text"),
        (f'{WHOLE}title="It broke."\n', "'title' is 'It broke.': expected a few words on one line, without a full stop"),
        (f'{WHOLE}title="It\\nbroke"\n', "expected a few words on one line"),
        (f'{WHOLE}advice="a"\n{WHOLE}advice="b"\n', "'advice' is 'b', and 'a' at another entry with the same 'why'"),
    ],
)
def test_broken_explanations(tmp_path: Path, text: str, message: str) -> None:
    """An entry that breaks a rule is an error with its number; it is never skipped."""
    path = tmp_path / "explanations.toml"
    path.write_text(text)
    with pytest.raises(ExplanationError, match=message):
        read_explanations(path)


def test_a_store_without_the_case_says_nothing_about_its_explanation(home: Path) -> None:
    """An explanation rots where its case is there and the change is not; it does not where the case was never run."""
    put(MID, "raised:E: text")
    put(NEW, "correct")
    assert run("accept", "2.13.0", "2.14.1", "--why", "registered on first use")[0] == 0
    store = Store(Path("others"))
    for release in (MID, NEW):
        store.write(environment(release), [record("correct", case="g/fix", kind="fix")])
    code, text = run("check", "2.13.0", "2.14.1", "--results", "others", "--cases", "g/fix")
    assert (code, "match nothing" in text) == (0, False)


def test_only_the_chosen_cases_explanations_can_be_stale(home: Path) -> None:
    """With `--cases`, an explanation of a case that was not chosen is none of that check's business."""
    store = Store(Path("results"))
    for release in (MID, NEW):
        store.write(environment(release), [record("correct", case=f"g/{name}", kind=name) for name in ("bug", "fix")])
    write(entry())
    assert run("check", "2.13.0", "2.14.1", "--cases", "g/fix")[0] == 0
    assert run("check", "2.13.0", "2.14.1", "--cases", "g/bug")[0] == 1
