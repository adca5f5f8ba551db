"""Secrets that programs print. Their commands are in the settings alone, and run only with consent."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from threading import Thread
from time import monotonic
from typing import IO, Final

from msgspec import Struct, structs

from msauto.errors import MsautoError, RefusedError, SourceLocation, nearest
from msauto.secrets.redaction import HIDDEN
from msauto.secrets.sources import LARGEST, secret_in

VARIABLE: Final = "MSAUTO_SECRET_COMMANDS"
"""The environment variable that is consent if it is ``1``, as the flag is."""


class SecretCommand(Struct, frozen=True):
    """A program with its arguments, the folder in which it runs, and the place where it is declared."""

    words: tuple[str, ...]
    folder: str
    place: SourceLocation


class SecretCommands(Struct):
    """The secrets that commands print, by name; each command runs once at most, and what came of it is kept.

    ``allowed``: whether commands may run. ``None``: nothing is sent, and ``***`` stands for each secret.
    """

    declared: Mapping[str, SecretCommand] = {}
    allowed: bool | None = False
    seconds: float = 30
    _done: dict[SecretCommand, str | MsautoError] = {}

    def offline(self) -> SecretCommands:
        """Return the same secrets for what sends nothing."""
        return structs.replace(self, allowed=None)

    def secret(self, name: str) -> str:
        """Return a secret; raises ``MsautoError``, and ``RefusedError`` without consent. No message shows output."""
        command = self.declared.get(name)
        if command is None:
            declare = f"declare it in msauto.toml, or name another with --config: [secrets] {name} = {{command = […]}}"
            raise MsautoError(
                f"unknown secret {name!r}", remedy=nearest(name, self.declared) or declare
            )
        if self.allowed is None:
            return HIDDEN
        what = f"the secret {name!r} ({command.place})"
        if not self.allowed:
            remedy = f"read the command, then allow it: --secret-commands, or {VARIABLE}=1"
            raise RefusedError(
                f"{what} comes from a command, and commands are not allowed to run", remedy=remedy
            )
        if command not in self._done:
            try:
                self._done[command] = secret_in(
                    _output(command, self.seconds), "its output", "correct the command"
                )
            except MsautoError as error:
                self._done[command] = error
        outcome = self._done[command]
        if isinstance(outcome, MsautoError):
            raise MsautoError(f"{what}: {outcome.message}", remedy=outcome.remedy)
        return outcome


def _output(command: SecretCommand, seconds: float) -> bytes:
    """Return what a program prints, and no more of it than shows that it is too much."""
    import subprocess  # most runs start no program

    remedy = f"run it by hand, beside {command.place.file}: its output is not shown here"
    printed: list[bytes] = []
    end = monotonic() + seconds
    try:
        program = subprocess.Popen(  # noqa: S603 - the settings name it, and the user consents
            command.words, cwd=command.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        why = f"cannot be started: {getattr(error, 'strerror', None) or 'its arguments are not valid'}"
        remedy = "install it, or correct the command"
    else:
        # In a thread: a process that it leaves behind may keep the pipe open.
        reader = Thread(target=_read, args=(program.stdout, printed), daemon=True)
        reader.start()
        reader.join(seconds)
        with suppress(subprocess.TimeoutExpired):
            program.wait(max(0, end - monotonic()))
        status = program.poll()
        program.kill()  # if it has not ended
        program.wait()
        if printed and (status == 0 or len(printed[0]) > LARGEST):
            return printed[0]
        why = f"ended with exit status {status}" if status else f"did not end within {seconds:g} s"
    raise MsautoError(f"the program {command.words[0]!r} {why}", remedy=remedy)


def _read(output: IO[bytes], printed: list[bytes]) -> None:
    with output:
        printed.append(output.read(LARGEST + 1))
