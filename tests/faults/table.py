"""Every fault that was tried, what must come of it, and its test. docs/reliability.md is written from it."""

from __future__ import annotations

from tests.tried import Chapter, Tried, crossed, ids

_REQUESTS = ids(
    "the run; the jobs; the artifacts; an artifact's address; the pull requests; the merge base; the pull "
    "request; the comments; a new comment; an edited comment; the check runs; a new check run; an edited "
    "check run; a new label; a label taken away; a label's meaning; the approvals; the pull request, when "
    "admitting; a permission; the repository; a branch; a new branch; a file; a new file; a new pull "
    "request; a commit; a comparison"
)
"""What is asked of GitHub."""

SIGNALS = Chapter(
    "Signals and processes",
    (
        Tried(
            "a build or pr that is ended while it compiles",
            "its exit code, no process, no folder",
            "faults/test_signals.py::test_a_verb_that_is_ended_while_it_compiles_leaves_nothing",
            crossed(ids("build; pr"), ids("SIGINT; SIGTERM; SIGHUP; SIGKILL")),
        ),
        Tried(
            "a fuzz that is ended while its worker loads torch",
            "its exit code, no process",
            "faults/test_signals.py::test_a_verb_that_is_ended_while_its_worker_loads_torch_leaves_nothing",
            ids("SIGINT; SIGTERM; SIGHUP; SIGKILL"),
        ),
        Tried(
            "the build after a killed one",
            "works, and removes what that left",
            "faults/test_signals.py::test_the_build_after_a_killed_one_cleans_up_and_works",
        ),
        Tried(
            "the temporary folder of a killed process beside that of a living one",
            "the first is removed, the second stays",
            "bench/system/test_lock.py::test_what_a_living_process_has_stays_and_what_a_killed_one_had_goes",
        ),
        Tried(
            "SIGKILL of who runs a command whose processes ignore SIGTERM",
            "all are killed",
            "bench/system/test_supervise.py::test_a_killed_caller_leaves_nothing_running",
        ),
        Tried(
            "a command past its time limit whose processes ignore SIGTERM",
            "all are killed",
            "bench/system/test_supervise.py::test_ends_the_whole_session_past_the_limit",
        ),
        Tried(
            "an interrupt while a command runs",
            "all are killed",
            "bench/system/test_supervise.py::test_ends_the_session_when_the_caller_fails",
        ),
        Tried(
            "SIGKILL of a leader while its worker loads",
            "the worker ends",
            "bench/system/test_worker.py::test_a_child_dies_with_its_parent_even_while_it_loads",
        ),
        Tried(
            "SIGKILL of a leader before its worker could notice",
            "the worker ends",
            "bench/system/test_worker.py::test_a_child_whose_parent_is_gone_before_it_looks_does_nothing",
        ),
        Tried(
            "a process that crashes while what it forked holds its output",
            "noticed at once, and the other is ended",
            "bench/system/test_worker.py::test_a_child_that_is_gone_is_noticed_though_what_it_started_holds_its_output",
        ),
        Tried(
            "a process that hangs", "ended, and said", "bench/system/test_worker.py::test_a_child_that_hangs_is_ended"
        ),
        Tried(
            "a profiled process whose leader is gone",
            "ends",
            "bench/kernel/test_watched_call.py::test_a_process_whose_leader_is_gone_ends",
        ),
        Tried(
            "bench, killed",
            "only the process in flight is lost",
            "bench/timing/test_paired.py::test_a_killed_run_loses_the_process_in_flight_alone",
        ),
        Tried(
            "bench, interrupted",
            "its process ends too",
            "bench/timing/test_paired.py::test_ctrl_c_ends_the_process_too",
        ),
        Tried(
            "a record of other rounds, cases or sources to resume",
            "refused",
            "bench/timing/test_paired.py::test_a_record_that_does_not_fit_is_refused",
        ),
        Tried(
            "a complete record to resume",
            "nothing is timed",
            "bench/timing/test_paired.py::test_resuming_what_is_complete_or_decided_times_nothing",
        ),
        Tried(
            "two builds of one commit at once",
            "one compiles",
            "bench/build/test_build.py::test_of_two_builds_at_once_one_compiles",
        ),
        Tried(
            "what a killed build left in the cache",
            "no hindrance",
            "bench/build/test_build.py::test_what_a_killed_build_left_is_no_hindrance",
        ),
        Tried("a compile over its limit", "ended", "bench/build/test_build.py::test_a_compile_over_its_limit_is_ended"),
    ),
)

FILES = Chapter(
    "Disks, files and outputs",
    (
        Tried(
            "a result written to a full device",
            "74 and one sentence",
            "ci/commands/test_exit_codes.py::test_a_full_disk_is_no_regression",
        ),
        Tried(
            "a file that was asked for has no place",
            "74 at once, naming it: nothing was compiled, measured or judged",
            "faults/test_outputs.py::test_a_file_that_has_no_place_stops_a_verb_at_once",
            crossed(
                ids("a folder in its place; below a file; no folder can be made; a full disk"),
                ids("bench -o; fuzz -o; resources --record; profile --record; report -o; report --html"),
            ),
        ),
        Tried(
            "a folder that was asked for has no place",
            "74 or 64 at once",
            "faults/test_outputs.py::test_a_folder_that_has_no_place_stops_a_verb_at_once",
            crossed(
                ids("a file in its place; below a file; no folder can be made; a full disk"),
                ids("build -o; profile --out; pr --out"),
            ),
        ),
        Tried(
            "a record to be added to that is none",
            "3 before anything is compiled",
            "faults/test_outputs.py::test_a_record_that_cannot_be_added_to_stops_a_verb_at_once",
        ),
        Tried(
            "`pr` that cannot start",
            "the last comment, page and record stay",
            "faults/test_outputs.py::test_a_pr_that_cannot_start_keeps_the_last_comment",
        ),
        Tried(
            "a disk that fills up",
            "the old file whole, and nothing beside it",
            "bench/core/test_files.py::test_a_full_disk_leaves_the_old_file_and_nothing_else",
            ids("write; try"),
        ),
        Tried(
            "a place that takes no file",
            "one sentence that names it",
            "bench/core/test_files.py::test_what_cannot_be_written_is_named",
            ids("/dev/full; a folder; a circle of links; below a file; a folder that is not"),
        ),
        Tried(
            "a link in the place of an output",
            "it stays one; what it leads to is written",
            "bench/core/test_files.py::test_a_link_stays_one",
        ),
        Tried("a named pipe as output", "it is written into", "bench/core/test_files.py::test_a_pipe_is_written_into"),
        Tried(
            "/dev/stdout that the shell redirects to a file",
            "it is written into, not replaced",
            "bench/core/test_files.py::test_what_a_process_has_open_is_written_into",
        ),
        Tried(
            "a name as long as names can be",
            "written",
            "bench/core/test_files.py::test_a_name_of_255_characters_can_be_written",
        ),
        Tried(
            "umask 0, 022 and 077",
            "a file is as private as that says",
            "bench/core/test_files.py::test_a_file_is_as_private_as_the_user_wants_it",
        ),
        Tried(
            "a record's disk that fails at the last moment",
            "the old record stays whole",
            "bench/test_record.py::test_a_failed_write_leaves_the_old_file_whole",
        ),
        Tried(
            "a run that is killed while it measures",
            "the record keeps all processes but the one in flight",
            "bench/timing/test_paired.py::test_a_killed_run_loses_the_process_in_flight_alone",
        ),
        Tried(
            "a finished record is resumed",
            "nothing is timed",
            "bench/timing/test_paired.py::test_resuming_what_is_complete_or_decided_times_nothing",
        ),
        Tried(
            "a record is resumed that is not there",
            "it begins",
            "bench/timing/test_paired.py::test_resuming_where_there_is_no_record_begins_one",
        ),
        Tried(
            "a cache that cannot be written",
            "a sentence that names KERNELGATE_CACHE",
            "bench/build/test_build.py::test_a_cache_that_cannot_be_written",
        ),
        Tried(
            "a damaged entry of the cache",
            "compiled again",
            "bench/build/test_build.py::test_a_damaged_entry_is_built_again",
            ids("library; manifest; missing library; missing manifest"),
        ),
        Tried(
            "a build that was killed left its folder",
            "the next build goes on",
            "bench/build/test_build.py::test_what_a_killed_build_left_is_no_hindrance",
        ),
        Tried(
            "the device is held by another measurement",
            "it waits, says for whom, and gives up",
            "bench/system/test_lock.py::test_a_held_device_is_refused_in_the_end_naming_the_holder",
        ),
        Tried(
            "the holder of the device is killed",
            "it holds nothing",
            "bench/system/test_lock.py::test_a_holder_that_is_killed_holds_nothing",
        ),
        Tried(
            "a temporary folder in which no lock can be made",
            "a sentence that names TMPDIR",
            "bench/system/test_lock.py::test_a_folder_that_cannot_be_written_is_named",
        ),
    ),
)

REPOSITORIES = Chapter(
    "Repositories",
    (
        Tried(
            "a work tree that differs from HEAD, also where git does not show it",
            "never recorded as HEAD's commit",
            "faults/test_repositories.py::test_a_tree_that_is_not_heads_is_never_recorded_as_head",
            ids(
                "an ignored header; a header ignored by this clone; sources behind a link; a link out of the sources; "
                "assumed unchanged; assumed unchanged, a header; assumed unchanged, deleted; assumed unchanged, the "
                "card; skipped in the work tree; skipped in the work tree, deleted; staged; untracked"
            ),
        ),
        Tried(
            "a work tree that reads as HEAD does",
            "recorded as HEAD's commit",
            "faults/test_repositories.py::test_a_tree_that_reads_as_heads_is_recorded_as_head",
            ids(
                "only its time; only its mode; other files; line ends by configuration; line ends by attributes; "
                "detached; a header in a submodule"
            ),
        ),
        Tried(
            "a repository at an odd path",
            "its commits, base and files are found",
            "faults/test_repositories.py::test_a_repository_at_an_odd_path",
            ids(
                "a space at the end; a line break at the end; a line break inside; no UTF-8; quotes and backslashes; "
                "a dash in front; brackets of a pattern; beyond Latin"
            ),
        ),
        Tried(
            "files whose names are no UTF-8",
            "checked out as they are",
            "faults/test_repositories.py::test_files_whose_names_are_no_utf8",
        ),
        Tried(
            "a repository that belongs to somebody else",
            "git's advice in full",
            "faults/test_repositories.py::test_gits_advice_on_a_repository_of_somebody_else_is_whole",
        ),
        Tried(
            "a lost object",
            "3, and what git says of it",
            "faults/test_repositories.py::test_a_commit_whose_object_is_lost_is_said_by_git",
        ),
        Tried(
            "no default branch",
            "3, and how to fetch it",
            "bench/system/test_git.py::test_default_base_without_a_default_branch",
        ),
        Tried(
            "a single branch, cloned without depth",
            "3, and how to fetch the default branch",
            "bench/system/test_git.py::test_default_base_of_a_branch_that_was_cloned_alone",
        ),
        Tried(
            "a shallow clone that ends at HEAD",
            "3, and how to fetch: never compared with itself",
            "bench/system/test_git.py::test_default_base_of_a_shallow_clone_is_not_head_itself",
        ),
        Tried(
            "a shallow clone that lacks the base",
            "3, and how to fetch",
            "bench/system/test_git.py::test_resolve_in_a_shallow_clone",
        ),
        Tried(
            "a branch without a common commit",
            "3: name the base",
            "bench/system/test_git.py::test_default_base_of_an_unrelated_branch",
        ),
        Tried(
            "no repository at all", "3, and what git says", "bench/system/test_git.py::test_default_base_outside_of_git"
        ),
        Tried(
            "a repository without a commit", "3", "bench/system/test_git.py::test_default_base_before_the_first_commit"
        ),
        Tried(
            "a commit that is not there",
            "3: check the name, or fetch",
            "bench/system/test_git.py::test_resolve_a_ref_that_does_not_exist",
        ),
        Tried(
            "a name of a commit that looks like an option",
            "3: there is no such commit",
            "bench/system/test_git.py::test_resolve_takes_no_option_for_a_ref",
        ),
        Tried(
            "a folder that is not there", "3", "bench/system/test_git.py::test_resolve_in_a_folder_that_does_not_exist"
        ),
        Tried("no git", "3: install it", "bench/system/test_git.py::test_resolve_without_git"),
        Tried(
            "a dirty checkout with an index of its own",
            "the base is read beside it, and it is left alone",
            "bench/system/test_git.py::test_worktree_holds_the_commit_and_leaves_the_checkout_alone",
        ),
        Tried(
            "a stale worktree and a lock of the index that a killed git left",
            "no hindrance",
            "bench/system/test_git.py::test_worktree_needs_no_clean_repository",
        ),
        Tried("a hook after checkouts", "not run", "bench/system/test_git.py::test_worktree_runs_no_hook"),
        Tried(
            "a sparse checkout without the sources",
            "the base has them",
            "bench/system/test_git.py::test_worktree_of_a_sparse_checkout",
        ),
        Tried("a linked worktree", "the base is read", "bench/system/test_git.py::test_worktree_of_a_linked_worktree"),
        Tried(
            "variables of another repository's hook",
            "ignored",
            "bench/system/test_git.py::test_worktree_inside_a_hook_of_another_repository",
        ),
        Tried(
            "a base without the folder",
            "an empty tree",
            "bench/system/test_git.py::test_worktree_of_a_commit_without_the_folder",
        ),
        Tried(
            "submodules",
            "read as the commit has them; one that is not here is named",
            "bench/system/test_git.py::test_worktree_with_submodules",
        ),
        Tried(
            "the current folder is gone",
            "74 and one sentence",
            "ci/commands/test_exit_codes.py::test_a_folder_that_is_gone_is_named",
        ),
    ),
)

TOOLS = Chapter(
    "Compilers and other tools",
    (
        Tried(
            "a compiler that is killed, crashes, has no memory or disk, or makes nothing",
            "3: could not be compiled, not the author's fault",
            "faults/test_compilers.py::test_a_compiler_that_breaks_down",
            ids("killed; cc1plus killed; a bug; silent; no memory; full disk; refuses everything; makes nothing"),
        ),
        Tried(
            "what compilers and ninja print when they break down",
            "told apart from an error of the sources",
            "bench/build/test_compiler_output.py::test_a_compiler_that_breaks_down_does_not_blame_the_sources",
            ids("g++ killed; cicc killed; compiler gone; silence; ninja; a bug of g++; full disk; memory"),
        ),
        Tried(
            "an error that a compiler names in the sources",
            "1, with its place",
            "bench/build/test_compiler_output.py::test_the_sources_are_at_fault_where_a_compiler_names_a_place_in_them",
            ids("the linker; the linker, with debug information; g++; nvcc"),
        ),
        Tried("ninja is killed", "3, naming the signal", "faults/test_compilers.py::test_ninja_is_killed"),
        Tried("ninja vanishes", "3 and one sentence", "faults/test_compilers.py::test_ninja_vanishes"),
        Tried("a broken ccache", "3, with what it says", "faults/test_compilers.py::test_a_broken_ccache"),
        Tried(
            "nvcc cannot do what the environment asks",
            "3, naming the variable",
            "faults/test_compilers.py::test_nvcc_cannot_do_what_the_environment_asks",
            ids("flags of the environment; a target that nvcc does not know"),
        ),
        Tried(
            "a flag of the card that the compiler refuses",
            "1: the author's",
            "faults/test_compilers.py::test_a_flag_of_the_card_that_the_compiler_refuses",
        ),
        Tried(
            "`g++ --version` hangs or fails",
            "3 within a time limit",
            "faults/test_compilers.py::test_a_compiler_that_does_not_say_its_version",
            ids("hangs; fails"),
        ),
        Tried(
            "`g++ --version` prints what is no UTF-8",
            "read all the same",
            "faults/test_compilers.py::test_a_version_that_is_no_text",
        ),
        Tried(
            "g++ is not executable",
            "3 and one sentence",
            "faults/test_compilers.py::test_a_compiler_that_is_no_program",
        ),
        Tried("no g++", "3, saying how to install it", "bench/build/test_toolchain.py::test_without_a_compiler"),
        Tried("no ninja", "3, saying how to install it", "bench/build/test_toolchain.py::test_without_ninja"),
        Tried("no torch", "3, saying how to install it", "bench/build/test_toolchain.py::test_without_torch"),
        Tried(
            "no nvcc",
            "the CPU path is compiled, and that is said",
            "bench/build/test_build_targets.py::test_without_nvcc_the_cpu_path_is_compiled",
        ),
        Tried(
            "a CUDA installation that lacks headers or the runtime",
            "passed over, naming what it lacks",
            "bench/build/test_toolchain.py::test_an_incomplete_cuda_is_passed_over",
        ),
        Tried(
            "a target that the sources lack",
            "3, naming those they have",
            "bench/build/test_build_targets.py::test_a_target_that_the_sources_lack",
        ),
        Tried(
            "a syntax error",
            "1, with file and line of the first error",
            "bench/build/test_build.py::test_a_failed_compile_shows_the_first_error",
        ),
        Tried(
            "an undefined symbol",
            "1, found while building",
            "bench/build/test_build.py::test_an_undefined_symbol_is_found_while_building",
        ),
        Tried(
            "a compiler that hangs, also one that ignores SIGTERM",
            "ended at the time limit, with all it started",
            "bench/build/test_build.py::test_a_compile_over_its_limit_is_ended",
        ),
        Tried(
            "a compile without an end",
            "3, naming limit and option",
            "faults/test_compilers.py::test_a_compile_without_an_end",
        ),
        Tried(
            "megabytes of a compiler's output",
            "shown and kept up to a limit, the first error found",
            "faults/test_compilers.py::test_much_output_is_cut_off_and_the_error_found",
        ),
        Tried(
            "a line of output without an end",
            "read in pieces",
            "bench/system/test_supervise.py::test_a_line_without_an_end_comes_in_pieces",
        ),
        Tried(
            "an entry of the cache that is a file or a link",
            "built again; nothing behind the link is touched",
            "faults/test_compilers.py::test_an_entry_of_the_cache_that_is_something_else",
            ids("file; dangling link; link to a folder; empty folder"),
        ),
        Tried(
            "an entry of an earlier kernelgate",
            "built again",
            "bench/build/test_build.py::test_an_entry_of_an_earlier_form_is_built_again",
            ids("kernels; card"),
        ),
        Tried(
            "a folder of the cache that is a file",
            "one sentence that names it",
            "faults/test_compilers.py::test_a_folder_of_the_cache_that_is_a_file",
            ids("locks-3; building-74"),
        ),
        Tried(
            "what killed builds left in the cache",
            "removed by the next build; a running one's stays",
            "faults/test_compilers.py::test_what_killed_builds_left_is_removed_by_the_next_one",
        ),
        Tried(
            "a build that was killed half-way",
            "no hindrance",
            "bench/build/test_build.py::test_what_a_killed_build_left_is_no_hindrance",
        ),
        Tried(
            "two builds of the same sources at once",
            "one compiles, the other waits",
            "bench/build/test_build.py::test_of_two_builds_at_once_one_compiles",
        ),
        Tried(
            "a base that does not compile, or whose card is wrong",
            "the head is measured alone, with the reason",
            "bench/kernel/test_commit.py::test_a_base_that_cannot_be_built_is_absent_with_the_reason",
        ),
        Tried(
            "a base without a card",
            "the head is measured alone",
            "bench/kernel/test_commit.py::test_a_base_without_a_card",
        ),
        Tried(
            "a base that is empty",
            "the head is measured alone",
            "bench/kernel/test_commit.py::test_a_base_that_is_empty",
        ),
        Tried(
            "a package that takes too long to compile",
            "3, naming the limit",
            "bench/kernel/test_triton_build.py::test_the_time_limit",
        ),
        Tried(
            "a call that ends the process that compiles a package",
            "its cases are compiled where they run",
            "bench/kernel/test_triton_build.py::test_a_call_that_ends_its_process",
        ),
    ),
)

KERNELS = Chapter(
    "Kernels",
    (
        Tried(
            "a kernel that fails: by a signal, an exit, an exception, a wrong output, a write elsewhere, a hang",
            "the case fails, in one sentence with the kernel's own words",
            "faults/test_kernels.py::test_a_kernel_that_fails_is_named_with_what_it_did",
            ids(
                "a null pointer; abort; exit 0; exit 77; an exception; an exception in several lines; an exception "
                "that is no UTF-8; a check; an exception of torch; an exception in parallel; an exception in a "
                "thread; no exception's kind; NaN; nothing is written; one in eight is wrong; the second call writes "
                "nothing; an input is changed; before the output; a process is left, and a crash; a hang"
            ),
        ),
        Tried(
            "a kernel that is right and does something else besides",
            "passes, and nothing of it stays",
            "faults/test_kernels.py::test_a_kernel_that_is_right_passes_whatever_else_it_does",
            ids(
                "none; a process is left; another folder, no variables; 200 MB of errors; messages of its own; a "
                "leak; two threads more"
            ),
        ),
        Tried(
            "a library that cannot be used",
            "one sentence",
            "faults/test_kernels.py::test_a_library_that_cannot_be_used_is_one_sentence",
            ids("a crash; an exit; no operator; another signature"),
        ),
        Tried(
            "what a kernel throws beyond torch's stable ABI",
            "its own text is said",
            "bench/kernel/test_loading.py::test_what_was_thrown_beyond_the_stable_abi_is_said",
        ),
        Tried(
            "an exception whose text is no UTF-8",
            "its text is said",
            "bench/kernel/test_loading.py::test_a_text_that_is_no_utf8_is_said_all_the_same",
        ),
        Tried(
            "a torch that keeps no text of an exception",
            "torch's own words",
            "bench/kernel/test_loading.py::test_a_torch_that_keeps_no_text_leaves_its_own_words",
        ),
        Tried(
            "a kernel that works when it is first called, and then no more",
            "wrong outputs where it is timed",
            "bench/timing/test_paired.py::test_a_kernel_that_does_not_do_its_work_when_timed_is_caught",
            ids("stops_working; remembers; writes_nan; skips_last_row"),
        ),
        Tried(
            "a crash in the middle of the list",
            "its case fails, the others run",
            "bench/check/test_fuzz.py::test_a_crash_fails_its_case_and_the_list_goes_on",
        ),
        Tried(
            "a hang in the middle of the list",
            "its case fails, the others run",
            "bench/check/test_fuzz.py::test_a_hang_fails_its_case_and_the_list_goes_on",
        ),
        Tried(
            "a kernel that crashes every time",
            "not run after three crashes",
            "bench/check/test_fuzz.py::test_after_three_crashes_the_rest_is_not_run",
        ),
        Tried(
            "a kernel that raises for some cases",
            "these fail alone",
            "bench/check/test_fuzz.py::test_an_error_that_a_kernel_raises_fails_its_case_alone",
        ),
        Tried(
            "a kernel that dies while it is timed",
            "the process and the case are named",
            "bench/timing/test_paired.py::test_a_kernel_that_dies_is_named_with_process_and_case",
        ),
        Tried(
            "a kernel that raises while it is timed",
            "the process and the case are named",
            "bench/timing/test_paired.py::test_a_kernel_that_raises_is_named_with_process_and_case",
        ),
        Tried(
            "a kernel that prints messages of its own while it is timed",
            "no harm",
            "bench/timing/test_paired.py::test_ctrl_c_ends_the_process_too",
        ),
        Tried(
            "a failure after some processes were timed",
            "they are kept",
            "bench/timing/test_paired.py::test_processes_before_a_failure_are_kept",
        ),
        Tried(
            "a library that bears no other beside it",
            "two processes take turns",
            "bench/timing/test_paired.py::test_a_library_that_bears_no_other_takes_turns_too",
        ),
        Tried(
            "a library that leaves a daemon",
            "ended, and named in the record",
            "bench/timing/test_process.py::test_a_process_that_a_library_leaves_behind_is_ended_and_named",
        ),
    ),
)

RECORDS = Chapter(
    "Records, baselines and policies",
    (
        Tried(
            "a record with one field broken, or one that contradicts itself",
            "refused in one sentence that names the place, exit 3",
            "faults/test_records.py::test_a_broken_record_is_refused_in_one_sentence",
            ids(
                "a sample in quotes; a sample that is true; a sample that is null; a sample that is a list; a sample "
                "of 0; a negative sample; a sample of 1e300; a denormal sample; samples that are a number; samples "
                "that are a text; a side more than there is; sides of different lengths; positions of another length; "
                "a count in quotes; a count that is true; a count with a fraction; a negative count; a count of 65 "
                "bits; a seed in quotes; an error in quotes; a negative error; passed in quotes; passed as a number; "
                "passed, and a result failed; passed, and failures counted; skipped, and a result failed; passed "
                "beyond its limit; fewer results than ran; a check of another kind; another status; a capability of "
                "other digits; a capability without a point; a capability that is a number; memory in quotes; an axis "
                "of 1e300; work below zero; a case without an id; a case twice; a process twice; a time of no case; a "
                "case twice in one process; another role; an unknown key; an unknown schema; cases that are a text; a "
                "run that is a list"
            ),
        ),
        Tried(
            "a file that is no record, or only a part of one",
            "refused in one sentence, exit 3",
            "faults/test_records.py::test_a_torn_record_is_refused_in_one_sentence",
            ids("empty; cut short; no JSON; a list; null; not UTF-8; 5,000 brackets; NaN; 1e999; two records in one"),
        ),
        Tried(
            "a record that cannot be read",
            "named, exit 3",
            "bench/test_record.py::test_a_file_that_cannot_be_read_is_named",
        ),
        Tried(
            "a record of another schema",
            "refused by name",
            "bench/test_record.py::test_a_broken_record_is_refused_by_name",
        ),
        Tried(
            "a write that fails half-way",
            "the old file stays whole",
            "bench/test_record.py::test_a_failed_write_leaves_the_old_file_whole",
        ),
        Tried(
            "a policy's number below or above its range, text, a truth value, NaN or infinite",
            "3: key, line, value and range",
            "ci/policy/test_policy.py::test_each_number_has_its_range",
            ids(
                "gates.regression_pct; gates.improvement_pct; gates.margin_pct; gates.mean_regression_pct; "
                "gates.mean_improvement_pct; gates.memory_max; certainty.alpha; processes.minimum; "
                "processes.to_block; processes.limit"
            ),
        ),
        Tried(
            "a policy that contradicts itself",
            "3: both keys and their values",
            "ci/policy/test_policy.py::test_what_contradicts_itself_is_refused",
            ids(
                "equivalent and regressed; equivalent and improved; fewer to block than at least; more to block than "
                "at most; resolution above a gate"
            ),
        ),
        Tried(
            "a policy that is none",
            "3 and one sentence",
            "ci/policy/test_policy.py::test_what_is_no_policy_is_refused_in_a_sentence",
            ids(
                "5,000 brackets; 5,000 lists; 5,000 digits; a key twice; a zero byte; JSON; a number for a switch; "
                "text for a switch; a choice that is none; text for a list; a number for a path"
            ),
        ),
        Tried(
            "a policy with odd sections, keys or presets",
            "3: its name",
            "ci/policy/test_policy.py::test_what_does_not_fit_is_refused_by_name",
        ),
        Tried(
            "a preset that does not fit",
            "3: its own line",
            "ci/policy/test_policy.py::test_a_preset_names_its_own_line",
        ),
        Tried(
            "a policy that is missing, a folder or binary",
            "3: its path",
            "ci/policy/test_policy.py::test_a_policy_file_that_cannot_be_read_is_named",
        ),
        Tried(
            "a policy that is a link to nothing",
            "3: never the built-in policy instead",
            "ci/policy/test_policy.py::test_a_policy_that_leads_nowhere_is_not_the_built_in_one",
        ),
        Tried(
            "a preset that is not there",
            "64: the others are named",
            "ci/policy/test_policy.py::test_an_unknown_preset_is_a_usage_error_that_names_the_others",
        ),
        Tried(
            "GPUs of a policy that do not fit",
            "3: what is wrong",
            "ci/policy/test_policy.py::test_gpus_that_do_not_fit_are_refused",
        ),
        Tried(
            "a broken history",
            "said once; judged without it",
            "ci/history/test_past.py::test_a_broken_history_is_said_once_and_stops_nothing",
            ids("folder; none; torn; older"),
        ),
        Tried(
            "a broken export of a history that is imported",
            "3: its name and the first fault",
            "ci/test_history_verb.py::test_a_broken_export_is_named",
        ),
        Tried(
            "processes that scatter without bounds",
            "learnt as far as such processes tell anything",
            "ci/judge/test_prior.py::test_processes_that_scatter_without_bounds_can_be_learnt",
        ),
        Tried(
            "a release that cannot be read, a best of another GPU",
            "nothing is said of them",
            "ci/judge/test_ratchet.py::test_a_release_that_cannot_be_read_or_is_of_another_gpu_says_nothing",
        ),
        Tried(
            "a broken baseline",
            "3, its name and the first fault; nothing is judged",
            "faults/test_baselines.py::test_a_broken_baseline_is_named",
            ids(
                "empty; null; a list; half a file; binary; UTF-16; a page of GitHub's; a pointer of git's LFS; with "
                "marks of a merge; 5,000 brackets; of another schema; an odd key; a time below zero; a time in words; "
                "a time that is true; an infinite time"
            ),
        ),
        Tried(
            "a baseline that cannot be read",
            "3 and its name",
            "faults/test_baselines.py::test_a_baseline_that_cannot_be_read_is_named",
            ids("missing; a folder"),
        ),
        Tried(
            "a baseline of another GPU",
            "3: not judged",
            "faults/test_baselines.py::test_a_baseline_of_another_gpu_judges_nothing",
        ),
        Tried(
            "a baseline without cases",
            "3: not judged",
            "faults/test_baselines.py::test_a_baseline_without_these_cases_judges_nothing",
        ),
    ),
)

ENVIRONMENT = Chapter(
    "The environment",
    (
        Tried(
            "closed descriptors",
            "the exit code that it would have been",
            "faults/test_environment.py::test_closed_descriptors_change_no_exit_code",
            ids("stderr; stdin and stderr; all"),
        ),
        Tried(
            "a locale that is not UTF-8",
            "the report goes out as UTF-8",
            "faults/test_environment.py::test_a_report_goes_out_as_utf8_whatever_the_locale",
            ids("LANG=C; a locale of ASCII; output of ASCII; a locale that is not there"),
        ),
        Tried(
            "output that takes few characters",
            "the others as escapes",
            "faults/test_environment.py::test_output_that_takes_few_characters_shows_the_others_as_escapes",
        ),
        Tried(
            "text beyond ASCII on an ASCII terminal",
            "written",
            "ci/commands/test_exit_codes.py::test_a_terminal_that_says_ascii_is_no_fault",
        ),
        Tried(
            "a narrow terminal",
            "nothing is lost",
            "faults/test_environment.py::test_a_narrow_terminal_takes_nothing_away",
            ids("0; 1; 20; no number"),
        ),
        Tried(
            "little memory",
            "3 and one sentence, before a library ends the process with 1",
            "faults/test_environment.py::test_little_memory_is_said_before_a_library_ends_the_process",
            ids("80; 150; 250"),
        ),
        Tried("1 GiB of memory", "enough to judge", "faults/test_environment.py::test_a_gigabyte_is_enough"),
        Tried(
            "few descriptors",
            "enough, or 3 and one sentence",
            "faults/test_environment.py::test_few_descriptors_are_enough_or_named",
            ids("6; 16"),
        ),
        Tried(
            "no HOME, and a user without a name",
            "a sentence that names KERNELGATE_CACHE",
            "faults/test_environment.py::test_a_home_that_is_not_there_is_named_with_what_to_set",
        ),
        Tried(
            "a TMPDIR that is not there",
            "another is used",
            "faults/test_environment.py::test_a_temporary_folder_that_is_not_there_is_replaced",
        ),
        Tried(
            "the note of a failure cannot be written",
            "a second sentence; the exit code stays",
            "faults/test_environment.py::test_a_failure_note_that_cannot_be_written_is_a_second_sentence",
        ),
        Tried(
            "a torch that does not start",
            "3, with its last words",
            "bench/system/test_environment.py::test_a_torch_that_does_not_start_is_one_sentence",
        ),
        Tried(
            "no room for a traceback",
            "70 and one sentence",
            "ci/commands/test_exit_codes.py::test_a_traceback_that_finds_no_room_is_no_second_fault",
        ),
        Tried(
            "an error of kernelgate's own",
            "70, one sentence, and its traceback in a file",
            "ci/commands/test_exit_codes.py::test_a_fault_of_our_own_is_one_sentence_and_its_traceback_a_file",
        ),
        Tried(
            "a reader of the output that is gone",
            "141, silent",
            "ci/commands/test_exit_codes.py::test_a_reader_that_is_gone_hears_nothing_more",
        ),
        Tried(
            "what ends any command",
            "its code and one sentence",
            "ci/commands/test_exit_codes.py::test_each_error_has_its_code",
        ),
    ),
)

GITHUB = Chapter(
    "GitHub",
    (
        Tried(
            "200 with what is no answer, six kinds after each other",
            "asked again until it is one",
            "faults/test_github_answers.py::test_junk_once_only_takes_longer",
            _REQUESTS,
        ),
        Tried(
            "the same for ever, of each request",
            "3 and one sentence that says what came",
            "faults/test_github_answers.py::test_junk_for_ever_is_one_sentence",
            crossed(
                _REQUESTS,
                ids(
                    "HTML; half of the JSON; empty; null; {}; a list of nulls; a number; a message; "
                    "ids that are texts; "
                    "rate limit of words; reset at infinity; Link of words; Link to itself"
                ),
            ),
        ),
        Tried(
            "401, of each request",
            "3: the token is expired or not valid; no word about permissions",
            "faults/test_github_answers.py::test_an_expired_token_is_said_to_be_one",
            _REQUESTS,
        ),
        Tried(
            "401, of a verb", "3 and one sentence", "faults/test_github_answers.py::test_the_verb_ends_with_a_sentence"
        ),
        Tried(
            "502 with any body",
            "tried again",
            "faults/test_github_answers.py::test_an_error_may_have_any_body",
            ids('<html>; []; "x"; {half; '),
        ),
        Tried(
            "a status, a limit or a lost answer once, of each request",
            "one comment, one check run, one label, no annotation twice",
            "ci/github/test_client.py::test_a_passing_fault_changes_nothing_in_the_end",
            ids(
                "GET /pulls/1-500; GET /pulls/1-502 three times; GET /pulls/1-503, and it was done; GET "
                "/pulls/1-connection lost before; GET /pulls/1-primary rate limit; GET /pulls/1-secondary rate limit; "
                "GET /pulls/1-429; GET /issues/1/comments-500; GET /issues/1/comments-502 three times; GET "
                "/issues/1/comments-503, and it was done; GET /issues/1/comments-connection lost before; GET "
                "/issues/1/comments-primary rate limit; GET /issues/1/comments-secondary rate limit; GET "
                "/issues/1/comments-429; POST /issues/1/comments-500; POST /issues/1/comments-502 three times; POST "
                "/issues/1/comments-503, and it was done; POST /issues/1/comments-connection lost before; POST "
                "/issues/1/comments-primary rate limit; POST /issues/1/comments-secondary rate limit; POST "
                "/issues/1/comments-429; GET /commits/.*/check-runs-500; GET /commits/.*/check-runs-502 three times; "
                "GET /commits/.*/check-runs-503, and it was done; GET /commits/.*/check-runs-connection lost before; "
                "GET /commits/.*/check-runs-primary rate limit; GET /commits/.*/check-runs-secondary rate limit; GET "
                "/commits/.*/check-runs-429; POST /check-runs-500; POST /check-runs-502 three times; POST "
                "/check-runs-503, and it was done; POST /check-runs-connection lost before; POST /check-runs-primary "
                "rate limit; POST /check-runs-secondary rate limit; POST /check-runs-429; POST /issues/1/labels-500; "
                "POST /issues/1/labels-502 three times; POST /issues/1/labels-503, and it was done; POST "
                "/issues/1/labels-connection lost before; POST /issues/1/labels-primary rate limit; POST "
                "/issues/1/labels-secondary rate limit; POST /issues/1/labels-429; PATCH /labels/.*-500; PATCH "
                "/labels/.*-502 three times; PATCH /labels/.*-503, and it was done; PATCH /labels/.*-connection lost "
                "before; PATCH /labels/.*-primary rate limit; PATCH /labels/.*-secondary rate limit; PATCH "
                "/labels/.*-429"
            ),
        ),
        Tried(
            "the same of an edit",
            "the edit is made once",
            "ci/github/test_client.py::test_an_edit_survives_bad_days_too",
            ids(
                "500; 502 three times; 503, and it was done; connection lost before; primary rate limit; secondary "
                "rate limit; 429"
            ),
        ),
        Tried(
            "the answer to annotations is lost",
            "none stands twice",
            "ci/github/test_client.py::test_a_lost_answer_never_doubles_annotations",
            ids("before; after"),
        ),
        Tried(
            "a request that takes too long",
            "tried again",
            "ci/github/test_client.py::test_a_timeout_is_a_passing_fault",
        ),
        Tried("Retry-After", "waited for", "ci/github/test_client.py::test_it_waits_as_long_as_github_asks"),
        Tried(
            "the reset of the primary limit",
            "waited for",
            "ci/github/test_client.py::test_it_waits_for_the_reset_of_the_primary_limit",
        ),
        Tried(
            "a limit for an hour",
            "3, and not waited for",
            "ci/github/test_client.py::test_it_does_not_wait_for_an_hour",
        ),
        Tried("503 for ever", "3 after eight tries", "ci/github/test_client.py::test_it_gives_up_in_the_end"),
        Tried("no network", "3 after eight tries", "ci/github/test_client.py::test_a_network_that_is_not_there"),
        Tried(
            "a missing permission",
            "named at once; the summary has the report",
            "ci/github/test_client.py::test_a_missing_permission_is_named_at_once",
            ids("comment; check run; label"),
        ),
        Tried(
            "a locked conversation",
            "a refusal, named",
            "ci/github/test_client.py::test_a_locked_conversation_is_a_refusal",
        ),
        Tried(
            "a comment that is deleted in between",
            "made again",
            "ci/github/test_client.py::test_a_comment_that_is_deleted_in_between_is_made_again",
        ),
        Tried(
            "a label that is removed in between",
            "no fault",
            "ci/github/test_client.py::test_a_label_that_is_removed_in_between_is_no_fault",
        ),
        Tried(
            "a body that GitHub finds too long",
            "the shorter one",
            "ci/github/test_client.py::test_a_body_that_github_finds_too_long_is_replaced_by_the_shorter_one",
        ),
        Tried(
            "a body over the limit", "never sent", "ci/github/test_client.py::test_a_body_over_the_limit_is_never_sent"
        ),
        Tried("two reports at once", "one comment", "ci/github/test_client.py::test_two_runs_really_at_once"),
        Tried(
            "two reports at once",
            "one check run: the other loses its name",
            "attacks/test_retarget.py::test_two_reports_at_once_leave_one_check_run",
        ),
        Tried(
            "a run's beginning that is told after its end",
            "changes nothing",
            "attacks/test_retarget.py::test_a_beginning_that_is_told_late_changes_nothing",
        ),
        Tried(
            "200 pull requests reported at once, with 429s and resets",
            "one comment, one check and the right label each",
            "faults/test_load.py::test_two_hundred_reports_at_once_on_bad_days",
        ),
        Tried(
            "a report that nothing disturbs",
            "twelve calls at most",
            "faults/test_load.py::test_a_report_takes_few_calls",
        ),
        Tried(
            "a result of an older commit, or of an older run of the same",
            "changes nothing",
            "ci/github/test_client.py::test_of_one_commit_the_newer_run_stays",
            ids("run; attempt"),
        ),
        Tried(
            "a head that moves while it is looked at",
            "noticed",
            "ci/github/test_client.py::test_the_head_that_moves_while_we_look_is_noticed",
        ),
        Tried(
            "a passing fault while a run is taken in",
            "it only takes longer",
            "ci/github/test_fetch.py::test_bad_days_only_take_longer",
        ),
        Tried(
            "a passing fault while a baseline is offered",
            "one pull request",
            "ci/github/test_baseline_pr.py::test_bad_days_only_take_longer",
        ),
        Tried(
            "an offer that is made twice",
            "changes nothing the second time",
            "ci/github/test_baseline_pr.py::test_offering_it_twice_changes_nothing",
        ),
        Tried(
            "a bot of another name",
            "says so, and piles up no comments",
            "ci/github/test_client.py::test_a_bot_of_another_name_does_not_pile_up_comments",
        ),
        Tried(
            "the token in a message of GitHub",
            "in no log and no error",
            "ci/github/test_client.py::test_the_token_is_in_no_log_and_no_error",
        ),
        Tried(
            "an environment without token or repository",
            "named",
            "ci/github/test_client.py::test_what_the_environment_lacks_is_named",
        ),
        Tried("an event that is none", "named", "ci/github/test_actions.py::test_an_event_that_is_none_is_named"),
        Tried(
            "a summary that is full",
            "cut where GitHub would refuse it",
            "ci/github/test_actions.py::test_the_summary_is_cut_where_github_would_refuse_it",
        ),
    ),
)

FAULTS = (SIGNALS, FILES, REPOSITORIES, TOOLS, KERNELS, RECORDS, ENVIRONMENT, GITHUB)
