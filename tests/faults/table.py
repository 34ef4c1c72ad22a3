"""Every fault that was tried, what must come of it, and its test. docs/reliability.md is written from it."""

from __future__ import annotations

from tests.tried import chapter

SIGNALS = chapter(
    "Signals and processes",
    """
a build or pr that is ended while it compiles → its exit code, no process, no folder
    faults/test_signals.py::test_a_verb_that_is_ended_while_it_compiles_leaves_nothing[*]
a fuzz that is ended while its worker loads torch → its exit code, no process
    faults/test_signals.py::test_a_verb_that_is_ended_while_its_worker_loads_torch_leaves_nothing[*]
the build after a killed one → works, and removes what that left
    faults/test_signals.py::test_the_build_after_a_killed_one_cleans_up_and_works
the temporary folder of a killed process beside that of a living one → the first is removed, the second stays
    bench/system/test_lock.py::test_what_a_living_process_has_stays_and_what_a_killed_one_had_goes
SIGKILL of who runs a command whose processes ignore SIGTERM → all are killed
    bench/system/test_supervise.py::test_a_killed_caller_leaves_nothing_running
a command past its time limit whose processes ignore SIGTERM → all are killed
    bench/system/test_supervise.py::test_ends_the_whole_session_past_the_limit
an interrupt while a command runs → all are killed
    bench/system/test_supervise.py::test_ends_the_session_when_the_caller_fails
SIGKILL of a leader while its worker loads → the worker ends
    bench/system/test_worker.py::test_a_child_dies_with_its_parent_even_while_it_loads
SIGKILL of a leader before its worker could notice → the worker ends
    bench/system/test_worker.py::test_a_child_whose_parent_is_gone_before_it_looks_does_nothing
a process that crashes while what it forked holds its output → noticed at once, and the other is ended
    bench/system/test_worker.py::test_a_child_that_is_gone_is_noticed_though_what_it_started_holds_its_output
a process that hangs → ended, and said
    bench/system/test_worker.py::test_a_child_that_hangs_is_ended
a profiled process whose leader is gone → ends
    bench/kernel/test_watched_call.py::test_a_process_whose_leader_is_gone_ends
bench, interrupted → its process ends too
    bench/timing/test_paired.py::test_ctrl_c_ends_the_process_too
a record of other rounds, cases or sources to resume → refused
    bench/timing/test_paired.py::test_a_record_that_does_not_fit_is_refused
a complete record to resume → nothing is timed
    bench/timing/test_paired.py::test_resuming_what_is_complete_or_decided_times_nothing
what a killed build left in the cache → no hindrance
    bench/build/test_build.py::test_what_a_killed_build_left_is_no_hindrance
    """,
)

FILES = chapter(
    "Disks, files and outputs",
    """
a result written to a full device → 74 and one sentence
    ci/commands/test_exit_codes.py::test_a_full_disk_is_no_regression
a file that was asked for has no place → 74 at once, naming it: nothing was compiled, measured or judged
    faults/test_outputs.py::test_a_file_that_has_no_place_stops_a_verb_at_once[*]
a folder that was asked for has no place → 74 or 64 at once
    faults/test_outputs.py::test_a_folder_that_has_no_place_stops_a_verb_at_once[*]
a record to be added to that is none → 3 before anything is compiled
    faults/test_outputs.py::test_a_record_that_cannot_be_added_to_stops_a_verb_at_once
`pr` that cannot start → the last comment, page and record stay
    faults/test_outputs.py::test_a_pr_that_cannot_start_keeps_the_last_comment
a disk that fills up → the old file whole, and nothing beside it
    bench/core/test_files.py::test_a_full_disk_leaves_the_old_file_and_nothing_else[*]
a place that takes no file → one sentence that names it
    bench/core/test_files.py::test_what_cannot_be_written_is_named[*]
a link in the place of an output → it stays one; what it leads to is written
    bench/core/test_files.py::test_a_link_stays_one
a named pipe as output → it is written into
    bench/core/test_files.py::test_a_pipe_is_written_into
/dev/stdout that the shell redirects to a file → it is written into, not replaced
    bench/core/test_files.py::test_what_a_process_has_open_is_written_into
a name as long as names can be → written
    bench/core/test_files.py::test_a_name_of_255_characters_can_be_written
umask 0, 022 and 077 → a file is as private as that says
    bench/core/test_files.py::test_a_file_is_as_private_as_the_user_wants_it
a record's disk that fails at the last moment → the old record stays whole
    bench/test_record.py::test_a_failed_write_leaves_the_old_file_whole
a run that is killed while it measures → the record keeps all processes but the one in flight
    bench/timing/test_paired.py::test_a_killed_run_loses_the_process_in_flight_alone
a record is resumed that is not there → it begins
    bench/timing/test_paired.py::test_resuming_where_there_is_no_record_begins_one
a cache that cannot be written → a sentence that names KERNELGATE_CACHE
    bench/build/test_build.py::test_a_cache_that_cannot_be_written
a damaged entry of the cache → compiled again
    bench/build/test_build.py::test_a_damaged_entry_is_built_again[*]
the device is held by another measurement → it waits, says for whom, and gives up
    bench/system/test_lock.py::test_a_held_device_is_refused_in_the_end_naming_the_holder
the holder of the device is killed → it holds nothing
    bench/system/test_lock.py::test_a_holder_that_is_killed_holds_nothing
a temporary folder in which no lock can be made → a sentence that names TMPDIR
    bench/system/test_lock.py::test_a_folder_that_cannot_be_written_is_named
    """,
)

REPOSITORIES = chapter(
    "Repositories",
    """
a work tree that differs from HEAD, also where git does not show it → never recorded as HEAD's commit
    faults/test_repositories.py::test_a_tree_that_is_not_heads_is_never_recorded_as_head[*]
a work tree that reads as HEAD does → recorded as HEAD's commit
    faults/test_repositories.py::test_a_tree_that_reads_as_heads_is_recorded_as_head[*]
a repository at an odd path → its commits, base and files are found
    faults/test_repositories.py::test_a_repository_at_an_odd_path[*]
files whose names are no UTF-8 → checked out as they are
    faults/test_repositories.py::test_files_whose_names_are_no_utf8
a repository that belongs to somebody else → git's advice in full
    faults/test_repositories.py::test_gits_advice_on_a_repository_of_somebody_else_is_whole
a lost object → 3, and what git says of it
    faults/test_repositories.py::test_a_commit_whose_object_is_lost_is_said_by_git
no default branch → 3, and how to fetch it
    bench/system/test_git.py::test_default_base_without_a_default_branch
a single branch, cloned without depth → 3, and how to fetch the default branch
    bench/system/test_git.py::test_default_base_of_a_branch_that_was_cloned_alone
a shallow clone that ends at HEAD → 3, and how to fetch: never compared with itself
    bench/system/test_git.py::test_default_base_of_a_shallow_clone_is_not_head_itself
a shallow clone that lacks the base → 3, and how to fetch
    bench/system/test_git.py::test_resolve_in_a_shallow_clone
a branch without a common commit → 3: name the base
    bench/system/test_git.py::test_default_base_of_an_unrelated_branch
no repository at all → 3, and what git says
    bench/system/test_git.py::test_default_base_outside_of_git
a repository without a commit → 3
    bench/system/test_git.py::test_default_base_before_the_first_commit
a commit that is not there → 3: check the name, or fetch
    bench/system/test_git.py::test_resolve_a_ref_that_does_not_exist
a name of a commit that looks like an option → 3: there is no such commit
    bench/system/test_git.py::test_resolve_takes_no_option_for_a_ref
a folder that is not there → 3
    bench/system/test_git.py::test_resolve_in_a_folder_that_does_not_exist
no git → 3: install it
    bench/system/test_git.py::test_resolve_without_git
a dirty checkout with an index of its own → the base is read beside it, and it is left alone
    bench/system/test_git.py::test_worktree_holds_the_commit_and_leaves_the_checkout_alone
a stale worktree and a lock of the index that a killed git left → no hindrance
    bench/system/test_git.py::test_worktree_needs_no_clean_repository
a hook after checkouts → not run
    bench/system/test_git.py::test_worktree_runs_no_hook
a sparse checkout without the sources → the base has them
    bench/system/test_git.py::test_worktree_of_a_sparse_checkout
a linked worktree → the base is read
    bench/system/test_git.py::test_worktree_of_a_linked_worktree
variables of another repository's hook → ignored
    bench/system/test_git.py::test_worktree_inside_a_hook_of_another_repository
a base without the folder → an empty tree
    bench/system/test_git.py::test_worktree_of_a_commit_without_the_folder
submodules → read as the commit has them; one that is not here is named
    bench/system/test_git.py::test_worktree_with_submodules
the current folder is gone → 74 and one sentence
    ci/commands/test_exit_codes.py::test_a_folder_that_is_gone_is_named
    """,
)

TOOLS = chapter(
    "Compilers and other tools",
    """
a compiler that is killed, crashes, has no memory or disk, or makes nothing
    → 3: could not be compiled, not the author's fault
    faults/test_compilers.py::test_a_compiler_that_breaks_down[*]
what compilers and ninja print when they break down → told apart from an error of the sources
    bench/build/test_compiler_output.py::test_a_compiler_that_breaks_down_does_not_blame_the_sources[*]
an error that a compiler names in the sources → 1, with its place
    bench/build/test_compiler_output.py::test_the_sources_are_at_fault_where_a_compiler_names_a_place_in_them[*]
ninja is killed → 3, naming the signal
    faults/test_compilers.py::test_ninja_is_killed
ninja vanishes → 3 and one sentence
    faults/test_compilers.py::test_ninja_vanishes
a broken ccache → 3, with what it says
    faults/test_compilers.py::test_a_broken_ccache
nvcc cannot do what the environment asks → 3, naming the variable
    faults/test_compilers.py::test_nvcc_cannot_do_what_the_environment_asks[*]
a flag of the card that the compiler refuses → 1: the author's
    faults/test_compilers.py::test_a_flag_of_the_card_that_the_compiler_refuses
`g++ --version` hangs or fails → 3 within a time limit
    faults/test_compilers.py::test_a_compiler_that_does_not_say_its_version[*]
`g++ --version` prints what is no UTF-8 → read all the same
    faults/test_compilers.py::test_a_version_that_is_no_text
g++ is not executable → 3 and one sentence
    faults/test_compilers.py::test_a_compiler_that_is_no_program
no g++ → 3, saying how to install it
    bench/build/test_toolchain.py::test_without_a_compiler
no ninja → 3, saying how to install it
    bench/build/test_toolchain.py::test_without_ninja
no torch → 3, saying how to install it
    bench/build/test_toolchain.py::test_without_torch
no nvcc → the CPU path is compiled, and that is said
    bench/build/test_build_targets.py::test_without_nvcc_the_cpu_path_is_compiled
a CUDA installation that lacks headers or the runtime → passed over, naming what it lacks
    bench/build/test_toolchain.py::test_an_incomplete_cuda_is_passed_over
a target that the sources lack → 3, naming those they have
    bench/build/test_build_targets.py::test_a_target_that_the_sources_lack
a syntax error → 1, with file and line of the first error
    bench/build/test_build.py::test_a_failed_compile_shows_the_first_error
an undefined symbol → 1, found while building
    bench/build/test_build.py::test_an_undefined_symbol_is_found_while_building
a compiler that hangs, also one that ignores SIGTERM → ended at the time limit, with all it started
    bench/build/test_build.py::test_a_compile_over_its_limit_is_ended
a compile without an end → 3, naming limit and option
    faults/test_compilers.py::test_a_compile_without_an_end
megabytes of a compiler's output → shown and kept up to a limit, the first error found
    faults/test_compilers.py::test_much_output_is_cut_off_and_the_error_found
a line of output without an end → read in pieces
    bench/system/test_supervise.py::test_a_line_without_an_end_comes_in_pieces
an entry of the cache that is a file or a link → built again; nothing behind the link is touched
    faults/test_compilers.py::test_an_entry_of_the_cache_that_is_something_else[*]
an entry of an earlier kernelgate → built again
    bench/build/test_build.py::test_an_entry_of_an_earlier_form_is_built_again[*]
a folder of the cache that is a file → one sentence that names it
    faults/test_compilers.py::test_a_folder_of_the_cache_that_is_a_file[*]
what killed builds left in the cache → removed by the next build; a running one's stays
    faults/test_compilers.py::test_what_killed_builds_left_is_removed_by_the_next_one
two builds of the same sources at once → one compiles, the other waits
    bench/build/test_build.py::test_of_two_builds_at_once_one_compiles
a base that does not compile, or whose card is wrong → the head is measured alone, with the reason
    bench/kernel/test_commit.py::test_a_base_that_cannot_be_built_is_absent_with_the_reason
a base without a card → the head is measured alone
    bench/kernel/test_commit.py::test_a_base_without_a_card
a base that is empty → the head is measured alone
    bench/kernel/test_commit.py::test_a_base_that_is_empty
a package that takes too long to compile → 3, naming the limit
    bench/kernel/test_triton_build.py::test_the_time_limit
a call that ends the process that compiles a package → its cases are compiled where they run
    bench/kernel/test_triton_build.py::test_a_call_that_ends_its_process
    """,
)

KERNELS = chapter(
    "Kernels",
    """
a kernel that fails: by a signal, an exit, an exception, a wrong output, a write elsewhere, a hang
    → the case fails, in one sentence with the kernel's own words
    faults/test_kernels.py::test_a_kernel_that_fails_is_named_with_what_it_did[*]
a kernel that is right and does something else besides → passes, and nothing of it stays
    faults/test_kernels.py::test_a_kernel_that_is_right_passes_whatever_else_it_does[*]
a library that cannot be used → one sentence
    faults/test_kernels.py::test_a_library_that_cannot_be_used_is_one_sentence[*]
what a kernel throws beyond torch's stable ABI → its own text is said
    bench/kernel/test_loading.py::test_what_was_thrown_beyond_the_stable_abi_is_said
an exception whose text is no UTF-8 → its text is said
    bench/kernel/test_loading.py::test_a_text_that_is_no_utf8_is_said_all_the_same
a torch that keeps no text of an exception → torch's own words
    bench/kernel/test_loading.py::test_a_torch_that_keeps_no_text_leaves_its_own_words
a kernel that works when it is first called, and then no more → wrong outputs where it is timed
    bench/timing/test_paired.py::test_a_kernel_that_does_not_do_its_work_when_timed_is_caught[*]
a crash in the middle of the list → its case fails, the others run
    bench/check/test_fuzz.py::test_a_crash_fails_its_case_and_the_list_goes_on
a hang in the middle of the list → its case fails, the others run
    bench/check/test_fuzz.py::test_a_hang_fails_its_case_and_the_list_goes_on
a kernel that crashes every time → not run after three crashes
    bench/check/test_fuzz.py::test_after_three_crashes_the_rest_is_not_run
a kernel that raises for some cases → these fail alone
    bench/check/test_fuzz.py::test_an_error_that_a_kernel_raises_fails_its_case_alone
a kernel that dies while it is timed → the process and the case are named
    bench/timing/test_paired.py::test_a_kernel_that_dies_is_named_with_process_and_case
a kernel that raises while it is timed → the process and the case are named
    bench/timing/test_paired.py::test_a_kernel_that_raises_is_named_with_process_and_case
a kernel that prints messages of its own while it is timed → no harm
    bench/timing/test_paired.py::test_ctrl_c_ends_the_process_too
a failure after some processes were timed → they are kept
    bench/timing/test_paired.py::test_processes_before_a_failure_are_kept
a library that bears no other beside it → two processes take turns
    bench/timing/test_paired.py::test_a_library_that_bears_no_other_takes_turns_too
a library that leaves a daemon → ended, and named in the record
    bench/timing/test_process.py::test_a_process_that_a_library_leaves_behind_is_ended_and_named
    """,
)

RECORDS = chapter(
    "Records, baselines and policies",
    """
a record with one field broken, or one that contradicts itself → refused in one sentence that names the place, exit 3
    faults/test_records.py::test_a_broken_record_is_refused_in_one_sentence[*]
a file that is no record, or only a part of one → refused in one sentence, exit 3
    faults/test_records.py::test_a_torn_record_is_refused_in_one_sentence[*]
a record that cannot be read → named, exit 3
    bench/test_record.py::test_a_file_that_cannot_be_read_is_named
a record of another schema → refused by name
    bench/test_record.py::test_a_broken_record_is_refused_by_name
a policy's number below or above its range, text, a truth value, NaN or infinite → 3: key, line, value and range
    ci/policy/test_policy.py::test_each_number_has_its_range[*]
a policy that contradicts itself → 3: both keys and their values
    ci/policy/test_policy.py::test_what_contradicts_itself_is_refused[*]
a policy that is none → 3 and one sentence
    ci/policy/test_policy.py::test_what_is_no_policy_is_refused_in_a_sentence[*]
a policy with odd sections, keys or presets → 3: its name
    ci/policy/test_policy.py::test_what_does_not_fit_is_refused_by_name
a preset that does not fit → 3: its own line
    ci/policy/test_policy.py::test_a_preset_names_its_own_line
a policy that is missing, a folder or binary → 3: its path
    ci/policy/test_policy.py::test_a_policy_file_that_cannot_be_read_is_named
a policy that is a link to nothing → 3: never the built-in policy instead
    ci/policy/test_policy.py::test_a_policy_that_leads_nowhere_is_not_the_built_in_one
a preset that is not there → 64: the others are named
    ci/policy/test_policy.py::test_an_unknown_preset_is_a_usage_error_that_names_the_others
GPUs of a policy that do not fit → 3: what is wrong
    ci/policy/test_policy.py::test_gpus_that_do_not_fit_are_refused
a broken history → said once; judged without it
    ci/history/test_past.py::test_a_broken_history_is_said_once_and_stops_nothing[*]
a broken export of a history that is imported → 3: its name and the first fault
    ci/test_history_verb.py::test_a_broken_export_is_named
processes that scatter without bounds → learnt as far as such processes tell anything
    ci/judge/test_prior.py::test_processes_that_scatter_without_bounds_can_be_learnt
a release that cannot be read, a best of another GPU → nothing is said of them
    ci/judge/test_ratchet.py::test_a_release_that_cannot_be_read_or_is_of_another_gpu_says_nothing
a broken baseline → 3, its name and the first fault; nothing is judged
    faults/test_baselines.py::test_a_broken_baseline_is_named[*]
a baseline that cannot be read → 3 and its name
    faults/test_baselines.py::test_a_baseline_that_cannot_be_read_is_named[*]
a baseline of another GPU → 3: not judged
    faults/test_baselines.py::test_a_baseline_of_another_gpu_judges_nothing
a baseline without cases → 3: not judged
    faults/test_baselines.py::test_a_baseline_without_these_cases_judges_nothing
    """,
)

ENVIRONMENT = chapter(
    "The environment",
    """
closed descriptors → the exit code that it would have been
    faults/test_environment.py::test_closed_descriptors_change_no_exit_code[*]
a locale that is not UTF-8 → the report goes out as UTF-8
    faults/test_environment.py::test_a_report_goes_out_as_utf8_whatever_the_locale[*]
output that takes few characters → the others as escapes
    faults/test_environment.py::test_output_that_takes_few_characters_shows_the_others_as_escapes
text beyond ASCII on an ASCII terminal → written
    ci/commands/test_exit_codes.py::test_a_terminal_that_says_ascii_is_no_fault
a narrow terminal → nothing is lost
    faults/test_environment.py::test_a_narrow_terminal_takes_nothing_away[*]
little memory → 3 and one sentence, before a library ends the process with 1
    faults/test_environment.py::test_little_memory_is_said_before_a_library_ends_the_process[*]
1 GiB of memory → enough to judge
    faults/test_environment.py::test_a_gigabyte_is_enough
few descriptors → enough, or 3 and one sentence
    faults/test_environment.py::test_few_descriptors_are_enough_or_named[*]
no HOME, and a user without a name → a sentence that names KERNELGATE_CACHE
    faults/test_environment.py::test_a_home_that_is_not_there_is_named_with_what_to_set
a TMPDIR that is not there → another is used
    faults/test_environment.py::test_a_temporary_folder_that_is_not_there_is_replaced
the note of a failure cannot be written → a second sentence; the exit code stays
    faults/test_environment.py::test_a_failure_note_that_cannot_be_written_is_a_second_sentence
a torch that does not start → 3, with its last words
    bench/system/test_environment.py::test_a_torch_that_does_not_start_is_one_sentence
no room for a traceback → 70 and one sentence
    ci/commands/test_exit_codes.py::test_a_traceback_that_finds_no_room_is_no_second_fault
an error of kernelgate's own → 70, one sentence, and its traceback in a file
    ci/commands/test_exit_codes.py::test_a_fault_of_our_own_is_one_sentence_and_its_traceback_a_file
a reader of the output that is gone → 141, silent
    ci/commands/test_exit_codes.py::test_a_reader_that_is_gone_hears_nothing_more
what ends any command → its code and one sentence
    ci/commands/test_exit_codes.py::test_each_error_has_its_code
    """,
)

GITHUB = chapter(
    "GitHub",
    """
200 with what is no answer, six kinds after each other → asked again until it is one
    faults/test_github_answers.py::test_junk_once_only_takes_longer[*]
the same for ever, of each request → 3 and one sentence that says what came
    faults/test_github_answers.py::test_junk_for_ever_is_one_sentence[*]
401, of each request → 3: the token is expired or not valid; no word about permissions
    faults/test_github_answers.py::test_an_expired_token_is_said_to_be_one[*]
401, of a verb → 3 and one sentence
    faults/test_github_answers.py::test_the_verb_ends_with_a_sentence
502 with any body → tried again
    faults/test_github_answers.py::test_an_error_may_have_any_body[*]
a status, a limit or a lost answer once, of each request and of an edit
    → one comment, one check run, one label, no annotation twice
    ci/github/test_client.py::test_a_passing_fault_changes_nothing_in_the_end[*]
the answer to annotations is lost → none stands twice
    ci/github/test_client.py::test_a_lost_answer_never_doubles_annotations[*]
a request that takes too long → tried again
    ci/github/test_client.py::test_a_timeout_is_a_passing_fault
Retry-After, and the reset of the primary limit → waited for
    ci/github/test_client.py::test_it_waits_as_long_as_github_asks
a limit for an hour → 3, and not waited for
    ci/github/test_client.py::test_it_does_not_wait_for_an_hour
503 for ever → 3 after eight tries
    ci/github/test_client.py::test_it_gives_up_in_the_end
no network → 3 after eight tries
    ci/github/test_client.py::test_a_network_that_is_not_there
a missing permission, a locked conversation → named at once; the summary has the report
    ci/github/test_client.py::test_a_missing_permission_is_named_at_once[*]
a comment that is deleted in between → made again
    ci/github/test_client.py::test_a_comment_that_is_deleted_in_between_is_made_again
a label that is removed in between → no fault
    ci/github/test_client.py::test_a_label_that_is_removed_in_between_is_no_fault
a body that GitHub finds too long → the shorter one
    ci/github/test_client.py::test_a_body_that_github_finds_too_long_is_replaced_by_the_shorter_one
a body over the limit → never sent
    ci/github/test_client.py::test_a_body_over_the_limit_is_never_sent
two reports at once → one comment
    ci/github/test_client.py::test_two_runs_really_at_once
two reports at once → one check run: the other loses its name
    attacks/test_retarget.py::test_two_reports_at_once_leave_one_check_run
a run's beginning that is told after its end → changes nothing
    attacks/test_retarget.py::test_a_beginning_that_is_told_late_changes_nothing
200 pull requests reported at once, with 429s and resets → one comment, one check and the right label each
    faults/test_load.py::test_two_hundred_reports_at_once_on_bad_days
a report that nothing disturbs → twelve calls at most
    faults/test_load.py::test_a_report_takes_few_calls
a result of an older commit, or of an older run of the same → changes nothing
    ci/github/test_client.py::test_of_one_commit_the_newer_run_stays[*]
a head that moves while it is looked at → noticed
    ci/github/test_client.py::test_the_head_that_moves_while_we_look_is_noticed
a passing fault while a run is taken in → it only takes longer
    ci/github/test_fetch.py::test_bad_days_only_take_longer
a passing fault while a baseline is offered → one pull request
    ci/github/test_baseline_pr.py::test_bad_days_only_take_longer
an offer that is made twice → changes nothing the second time
    ci/github/test_baseline_pr.py::test_offering_it_twice_changes_nothing
a bot of another name → says so, and piles up no comments
    ci/github/test_client.py::test_a_bot_of_another_name_does_not_pile_up_comments
the token in a message of GitHub → in no log and no error
    ci/github/test_client.py::test_the_token_is_in_no_log_and_no_error
an environment without token or repository → named
    ci/github/test_client.py::test_what_the_environment_lacks_is_named
an event that is none → named
    ci/github/test_actions.py::test_an_event_that_is_none_is_named
a summary that is full → cut where GitHub would refuse it
    ci/github/test_actions.py::test_the_summary_is_cut_where_github_would_refuse_it
    """,
)

FAULTS = (SIGNALS, FILES, REPOSITORIES, TOOLS, KERNELS, RECORDS, ENVIRONMENT, GITHUB)
