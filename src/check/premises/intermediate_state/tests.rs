use crate::check::premises::intermediate_state::{Kind, RULE};
use crate::check::testing::trial::{holds, kinds, ruled, trial};

/// The plugin gives .47 to web-2 in two writes. The reconciler reads in between and frees the address.
const STORY: &str = "default ippools.whereabouts.cni.cncf.io in kube-system\n\
    sts@A CREATE pods/default/web-2 => pods/default/web-2:w2@20\n\
    cni@A CREATE p[.spec.allocations.45.podref=default/web-0] => p:pu@22\n\
    cni@A PATCH p test(@22) => p:pu@33[.spec.allocations={\"45\":{\"podref\":\"default/web-0\"},\"47\":{\"podref\":\"default/web-2\"}}]\n\
    rec@A LIST pods for d => 34 {pods/default/web-2@20}\n\
    rec@A GET p for d => p:pu@33\n\
    rec@A PATCH p test(@33) for d => p:pu@40[.spec.allocations.45.podref=default/web-0]\n\
    cni@A PATCH pods/default/web-2 => pods/default/web-2:w2@45[.metadata.annotations[\"k8s.v1.cni.cncf.io/network-status\"]=ips]\n";

#[test]
fn an_address_taken_away_between_the_two_writes_that_give_it() {
    assert_eq!(kinds(&RULE, STORY), [Kind::Violation]);
    let found = trial(&RULE, STORY);
    assert!(found.findings[0].certificate.reason.contains("from revision 33 to 45"), "{:?}", found.findings);
}

#[test]
fn without_a_declared_decision_it_is_a_suspect() {
    assert_eq!(kinds(&RULE, &STORY.replace(" for d", "")), [Kind::Suspect]);
    // A watch without recorded events may have shown it more.
    let unseen = STORY.replace(" for d", "").replace("rec@A GET p", "rec@A WATCH pods from 34\nrec@A GET p");
    assert_eq!(kinds(&RULE, &format!("recorded audit\n{unseen}")), []);
}

#[test]
fn a_decision_that_was_refused_or_only_looked_is_a_hazard() {
    let refused = STORY.replace("=> p:pu@40[.spec.allocations.45.podref=default/web-0]", "=> !422");
    assert_eq!(kinds(&RULE, &refused), [Kind::Hazard]);
    let looked: String = STORY.lines().filter(|line| !line.contains("rec@A PATCH")).map(|l| format!("{l}\n")).collect();
    assert_eq!(kinds(&RULE, &looked), [Kind::Hazard]);
}

#[test]
fn whoever_began_never_came_back() {
    let abandoned: String =
        STORY.lines().filter(|line| !line.contains("cni@A PATCH pods")).map(|l| format!("{l}\n")).collect();
    assert!(holds(&RULE, &abandoned));
}

#[test]
fn a_second_attempt_has_an_address_of_its_own() {
    let again = STORY.replace(
        "cni@A PATCH pods",
        "cni@A PATCH p test(@40) => p:pu@42[.spec.allocations={\"45\":{\"podref\":\"default/web-0\"},\"48\":{\"podref\":\"default/web-2\"}}]\ncni@A PATCH pods",
    );
    assert!(holds(&RULE, &again));
}

#[test]
fn whoever_reads_the_complete_operation_may_undo_it() {
    let complete = STORY.replace(
        "rec@A PATCH",
        "rec@A GET pods/default/web-2 for d => pods/default/web-2:w2@36[.metadata.annotations[\"k8s.v1.cni.cncf.io/network-status\"]=ips]\nrec@A PATCH",
    );
    assert!(holds(&RULE, &complete));
    // Concurrent writes of others to the pool do not matter.
    let other = STORY.replace(
        "p:pu@40[.spec.allocations.45.podref=default/web-0]",
        "p:pu@40[.spec.allocations={\"45\":{\"podref\":\"default/web-0\"},\"47\":{\"podref\":\"default/web-2\"},\"48\":{\"podref\":\"default/web-5\"}}]",
    );
    assert!(holds(&RULE, &other));
}

/// A join by the namespace alone makes one group of all objects in it.
#[test]
fn a_group_that_joins_everything_is_left_open_and_takes_no_longer_for_it() {
    let part = "[[group.part]]\nresource = \"widgets\"\nof = [\"metadata.namespace\"]\n";
    let rules = format!("[[group]]\nname = \"all\"\n{part}{part}");
    let widgets = |count: u32| {
        let made = (0..count).map(|n| format!("a@A CREATE w{n} => w{n}:u{n}@{}\n", 10 + n));
        let read = (0..count).map(|n| format!("b@A GET w{n} => w{n}:u{n}@{}\n", 10 + n));
        let gone = (0..count).map(|n| format!("b@A DELETE w{n}:u{n} => ok:u{n}\n"));
        format!("default widgets in d\n{}", made.chain(read).chain(gone).collect::<String>())
    };
    let few = ruled(&RULE, &rules, &widgets(20));
    assert_eq!((few.checked, few.undecided, few.findings.len()), (20, 0, 0));
    let many = ruled(&RULE, &rules, &widgets(1_200));
    assert_eq!((many.checked, many.undecided > 0, many.findings.len()), (1_200, true, 0));
}

#[test]
fn a_process_may_look_at_its_own_work() {
    assert!(holds(&RULE, &STORY.replace("cni@A", "rec@A")));
}

#[test]
fn an_orphaned_claim_is_removed_while_its_pod_is_being_made() {
    let text = "default pods\n\
        sts@A CREATE persistentvolumeclaims/data => persistentvolumeclaims/data:c1@20\n\
        cleaner@A LIST persistentvolumeclaims for d => 21 {persistentvolumeclaims/data:c1@20}\n\
        cleaner@A LIST for d => 21 {}\n\
        cleaner@A DELETE persistentvolumeclaims/data:c1 for d => ok\n\
        sts@A CREATE web-0[.spec.volumes=[{\"name\":\"data\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]] => web-0:w0@30\n\
        etcd +persistentvolumeclaims/data:c1@20 -persistentvolumeclaims/data:c1@25\n";
    assert_eq!(kinds(&RULE, text), [Kind::Violation]);
    // The claim was made again for the pod.
    let again = text
        .replace(
            "sts@A CREATE web-0",
            "sts@A CREATE persistentvolumeclaims/data => persistentvolumeclaims/data:c2@28\nsts@A CREATE web-0",
        )
        .replace(
            "-persistentvolumeclaims/data:c1@25",
            "-persistentvolumeclaims/data:c1@25 +persistentvolumeclaims/data:c2@28",
        );
    assert!(holds(&RULE, &again));
}

#[test]
fn a_write_meant_for_the_configuration_of_the_node_before_lands_on_the_new_one() {
    let text = "default nodenetworkconfigs\n\
        k@A CREATE nodes/n => nodes/n:n1@10\nd@A CREATE n[owner=Node/n:n1] => n:c1@11\n\
        x@A DELETE nodes/n:n1 => ok\nk@A CREATE nodes/n => nodes/n:n2@30\n\
        cns@A GET nodes/n for d => nodes/n:n2@30\ncns@A GET n for d => n:c1@11\n\
        x@A DELETE n:c1 => ok\nd@A CREATE n[owner=Node/n:n2] => n:c2@41\nd@A PUT n:c2@41 => n:c2@42\n\
        cns@A PUT n:c2@42 for d => n:c2@45\n";
    assert_eq!(kinds(&RULE, text), [Kind::Violation]);
    assert!(holds(&RULE, &text.replace("cns@A PUT", "cns@A GET n for d => n:c2@42\ncns@A PUT")));
}

#[test]
fn a_watch_of_the_deletion_takes_nothing_from_the_evidence() {
    const SEATS: &str = "[[group]]\nname = \"guest-seat\"\n[[group.part]]\nresource = \"seats.hall.example.com\"\n\
        of = [\"metadata.namespace\", \"spec.guest\"]\n[[group.part]]\nresource = \"guests.hall.example.com\"\n\
        of = [\"metadata.namespace\", \"metadata.name\"]\nfield = \"status.seat\"\n";
    let story = "resource seats.hall.example.com kind=Seat\nresource guests.hall.example.com kind=Guest\n\
        default guests.hall.example.com\no@A CREATE g => g:g1@10[.spec.rank=1]\n\
        usher@A CREATE seats.hall.example.com/s[.spec.guest=g] => seats.hall.example.com/s:s1@20[.spec.guest=g]\n\
        clerk@A GET g for d => g:g1@10[.spec.rank=1]\nclerk@A GET seats.hall.example.com/s for d => seats.hall.example.com/s:s1@20\n\
        clerk@A DELETE seats.hall.example.com/s:s1 for d => ok\n\
        usher@A PUT status g:g1@10 => g:g1@30[.status.seat=s]\n";
    let watch = |events: &str| format!("{story}w@A WATCH seats.hall.example.com {events}\n");
    let seat = "seats.hall.example.com/s:s1";
    let shown = watch(&format!("from 19 +{seat}@20 -{seat}@25"));
    let unsure = watch(&format!("rv=0 -{seat}@25"));
    for text in [story, &shown, &unsure] {
        assert_eq!(ruled(&RULE, SEATS, text).kinds(), [Kind::Violation], "{text}");
        // A second read of the guest shows the seat and that the guest has it.
        let again = text.replace("clerk@A DELETE", "clerk@A GET g for d => g:g1@30[.status.seat=s]\nclerk@A DELETE");
        let (before, after) = again.split_once("clerk@A GET g for d => g:g1@10[.spec.rank=1]\n").unwrap_or_default();
        let (look, late) = after.split_once("usher@A PUT status").unwrap_or_default();
        let (put, rest) = late.split_once('\n').unwrap_or_default();
        let whole = format!("{before}usher@A PUT status{put}\n{look}{rest}");
        assert_eq!(ruled(&RULE, SEATS, &whole).kinds(), [], "{whole}");
    }
}

#[test]
fn a_leftover_of_the_object_before_is_not_half_of_what_the_next_one_gets() {
    let again = STORY.replace(
        "rec@A LIST pods for d => 34 {pods/default/web-2@20}\n",
        "sts@A DELETE pods/default/web-2:w2 => ok\nsts@A CREATE pods/default/web-2 => pods/default/web-2:w3@34\n\
         rec@A LIST pods for d => 35 {pods/default/web-2:w3@34}\n",
    );
    let again = again.replace(
        "cni@A PATCH pods/default/web-2 => pods/default/web-2:w2",
        "cni@A PATCH pods/default/web-2 => pods/default/web-2:w3",
    );
    assert!(holds(&RULE, &again), "{again}");
}
