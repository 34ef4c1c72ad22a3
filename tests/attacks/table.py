"""Every attack that was tried, what must come of it, and its test. docs/security.md is written from it."""

from __future__ import annotations

from tests.tried import Group, Tried


def _in_every_workflow(check: str) -> tuple[str, ...]:
    """The cases of one check of the workflows' files."""
    called = ("build", "measure", "plan", "report")
    others = ("answer-command", "check", "measure-pull-request", "nightly", "profile", "refresh-baseline")
    return tuple(f"{check}-{name}" for name in sorted((*called, *others)))


WITHOUT_FORGING = Group(
    "What a person can do without forging anything",
    (
        # without_forging
    ),
)

TEXT = Group(
    "Text: in records, branches, commits and descriptions",
    (
        # text
    ),
)

ARCHIVES = Group(
    "Archives and JSON",
    (
        # archives
    ),
)

IDENTITY = Group(
    "Identity: of which run, commit and pull request",
    (
        # identity
        Tried(
            "a record of another pull request, head, base, repository, run or of a later attempt",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_a_record_of_something_else_is_refused",
        ),
    ),
)

COMPLETENESS = Group(
    "A record that says less, or something else, than was planned",
    (
        # completeness
    ),
)

EVIDENCE = Group(
    "Forged measurements",
    (
        # evidence
    ),
)

RESOURCES = Group(
    "A record that stops the report or makes it slow",
    (
        # resources
    ),
)

COMMANDS = Group(
    "Commands, approvals and events",
    (
        # commands
    ),
)

BUILD = Group(
    "The build",
    (
        # build
    ),
)

BASELINE = Group(
    "The baseline's offer",
    (
        # baseline
    ),
)

NATIVE = Group(
    "Code of the kernel that runs on the runner",
    (
        # native
    ),
)

WORKFLOWS = Group(
    "The workflows and what they install",
    (
        Tried(
            "a pull request changes the check of its own description, its policy or the action that sets it up",
            "held to what was merged",
            "workflows/test_checks.py::test_a_pull_request_that_changes_the_template_check_is_held_to_the_one_that_was_merged",
        ),
        Tried(
            "a fork edits a workflow to run on the GPU",
            "the job is never started",
            "workflows/test_end_to_end.py::test_a_forks_edited_workflow_never_reaches_the_gpu",
        ),
        Tried(
            "a fork edits a workflow to get a write token",
            "GitHub gives it a token that can only read",
            "workflows/test_end_to_end.py::test_a_forks_edited_workflow_gets_no_write_token",
        ),
        Tried(
            "a fork changes what measures and judges",
            "built, measured and judged by the default branch",
            "workflows/test_end_to_end.py::test_a_forks_changes_to_the_judge_do_not_judge",
        ),
        Tried(
            "a pull request relaxes the policy",
            "judged by the default branch's",
            "workflows/test_end_to_end.py::test_a_pull_request_is_judged_by_the_policy_that_it_changes",
        ),
        Tried(
            "a run of a fork, by each event that a fork's workflow may choose",
            "waits until a maintainer approves it",
            "workflows/test_workflows.py::test_a_forks_run_waits_for_approval",
            (
                "a fork",
                "a review of a fork's",
                "a comment of a review of a fork's",
                "a fork that was deleted",
                "an event that is not known",
            ),
        ),
        Tried(
            "the same events, asked again on the runner",
            "not admitted without an approval",
            "ci/github/test_admit.py::test_events_that_a_forks_workflow_may_choose_are_asked_the_same",
            ("pull_request_review", "pull_request_review_comment"),
        ),
        Tried(
            "events that start nothing of ours",
            "not admitted",
            "ci/github/test_admit.py::test_unknown_events_are_not",
            ("fork", "watch", "something_new"),
        ),
        Tried(
            "a fork that nobody approved, or that was approved for something else",
            "not admitted",
            "ci/github/test_admit.py::test_a_fork_that_nobody_approved_is_not",
        ),
        Tried(
            "an environment without reviewers",
            "not admitted",
            "workflows/test_end_to_end.py::test_an_environment_that_nobody_protected_lets_nobody_in",
        ),
        Tried(
            "a push after the approval",
            "not admitted",
            "ci/github/test_admit.py::test_a_commit_pushed_after_the_approval_is_not",
            ("octo-org/kernels", "stranger/kernels"),
        ),
        Tried(
            "another commit than that of the run",
            "not admitted",
            "ci/github/test_admit.py::test_another_commit_than_the_runs_is_not",
        ),
        Tried(
            "an event of another form than GitHub's",
            "refused in a sentence that names the place",
            "ci/github/test_actions.py::test_an_event_of_another_form_is_refused_and_the_place_named",
            ("list", "number", "no commit", "below zero", "no text", "no time zone", "no inputs"),
        ),
        Tried(
            "a workflow that runs a pull request's code and may write",
            "there is none",
            "workflows/test_workflows.py::test_what_runs_a_pull_requests_code_can_only_read",
            ("check", "nightly", "measure-pull-request", "plan", "build", "measure"),
        ),
        Tried(
            "a write token beside a pull request's files or a library",
            "there is none",
            "workflows/test_workflows.py::test_a_write_token_never_meets_a_pull_requests_files",
        ),
        Tried(
            "pull_request_target",
            "used nowhere",
            "workflows/test_workflows.py::test_pull_request_target_is_used_nowhere",
        ),
        Tried(
            "a caller of a workflow chooses what is checked out",
            "its own commit is",
            "workflows/test_workflows.py::test_measuring_code_is_the_called_workflows_own",
        ),
        Tried(
            "text of an event inside a script of a workflow",
            "there is no expression in any script",
            "workflows/test_workflows.py::test_it_has_no_fault",
            _in_every_workflow("injected"),
        ),
        Tried(
            "the tag of an action is moved to other code",
            "every action is pinned to a full commit",
            "workflows/test_workflows.py::test_it_has_no_fault",
            _in_every_workflow("unpinned"),
        ),
        Tried(
            "a cache carries files from an untrusted run into a trusted one",
            "there is no cache",
            "workflows/test_workflows.py::test_it_has_no_fault",
            _in_every_workflow("caches"),
        ),
        Tried(
            "a token left in a checkout, for what runs there",
            "no checkout keeps it",
            "workflows/test_workflows.py::test_it_has_no_fault",
            _in_every_workflow("left credentials"),
        ),
        Tried(
            "a fault of a workflow that zizmor knows",
            "found; 15 lines and one rule are passed over, each with its reason",
            "workflows/test_workflows.py::test_zizmor_is_really_asked",
            ("injected", "another's action by its tag", "another repository by its branch"),
        ),
        Tried(
            "an exception for zizmor without a reason, or one more than there are",
            "the tests fail",
            "workflows/test_workflows.py::test_every_exception_for_zizmor_gives_its_reason_and_they_are_few",
        ),
        Tried(
            "a version that was taken over is offered on the day of its release",
            "dependabot waits a week",
            "workflows/test_workflows.py::test_dependabot_waits_before_it_offers_a_version",
        ),
        Tried(
            "a package of the judge with the right version and other content",
            "not installed",
            "attacks/test_installed.py::test_a_package_with_other_content_is_not_installed",
        ),
        Tried(
            "an index, an option or a package without a hash among the judge's packages",
            "the tests fail",
            "attacks/test_installed.py::test_the_lock_has_the_versions_of_the_constraints",
        ),
        Tried(
            "a package that a package of the judge needs and nobody pinned",
            "the tests fail",
            "attacks/test_installed.py::test_the_lock_holds_what_judging_needs_and_nothing_else",
        ),
        Tried(
            "a source distribution, whose build fetches and runs what has no hash",
            "wheels alone are installed",
            "attacks/test_installed.py::test_the_judges_packages_are_installed_by_their_hashes_alone",
        ),
        Tried(
            "a job with a write token that installs something else",
            "there is none",
            "attacks/test_installed.py::test_a_job_that_may_write_installs_by_hashes_alone",
        ),
        Tried(
            "a hook of the repository",
            "not run",
            "bench/system/test_git.py::test_worktree_runs_no_hook",
        ),
        Tried(
            "a filter that .gitattributes asks for",
            "not run",
            "attacks/test_checkout.py::test_a_filter_that_the_checkout_asks_for_is_not_run",
        ),
        Tried(
            "a module in the checkout with the name of another",
            "not imported",
            "attacks/test_checkout.py::test_a_module_in_the_checkout_stands_in_for_no_other",
            ("sitecustomize", "usercustomize", "torch", "json", "pydantic", "kernelgate"),
        ),
        Tried(
            "a package in the current folder of a worker process",
            "not imported",
            "bench/system/test_worker_process.py::test_the_current_folder_cannot_stand_in_for_the_package",
        ),
        Tried(
            "inputs of every reader of untrusted bytes that fuzzing found or that reach far",
            "read, or refused in a sentence, and soon",
            "fuzzing/test_readers.py::test_what_once_was_found_is_read_or_refused_in_a_sentence",
            ("archive", "command", "description", "event", "failure", "manifest", "policy", "record"),
        ),
        Tried(
            "what hypothesis makes of them",
            "read, or refused in a sentence, and soon",
            "fuzzing/test_readers.py::test_what_is_made_of_it_is_read_or_refused_in_a_sentence",
            ("archive", "command", "description", "event", "failure", "manifest", "policy", "record"),
        ),
        Tried(
            "a profiler report that makes NVIDIA's reader abort",
            "refused in a sentence",
            "ci/explain/test_analyze.py::test_a_report_that_ends_nvidias_reader_is_one_sentence",
        ),
    ),
)

ATTACKS = (
    WITHOUT_FORGING,
    TEXT,
    ARCHIVES,
    IDENTITY,
    COMPLETENESS,
    EVIDENCE,
    RESOURCES,
    COMMANDS,
    BUILD,
    BASELINE,
    NATIVE,
    WORKFLOWS,
)
