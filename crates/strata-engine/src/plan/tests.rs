use super::*;

fn summary(numbers: [usize; 6]) -> Summary {
    let [create, update, replace, delete, restart, unchanged] = numbers;
    Summary { create, update, replace, delete, restart, unchanged, moved: 0, left_out: 0 }
}

#[test]
fn numbers_of_stacks_add_up_and_restarts_are_no_changes_of_their_own() {
    assert_eq!(summary([1, 2, 4, 8, 16, 32]).changes(), 15);
    assert_eq!(Summary::default().changes(), 0);
    let mut all = summary([1, 2, 3, 4, 5, 6]);
    all += summary([10, 20, 30, 40, 50, 60]);
    assert_eq!(all, summary([11, 22, 33, 44, 55, 66]));
}
