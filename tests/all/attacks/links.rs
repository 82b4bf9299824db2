//! Symbolic links in folders of others.

use std::os::unix::fs::symlink;

use brewbench::auth::model::Scope;

use crate::harness::{App, program::as_user, summaries::good};

#[tokio::test]
async fn an_imported_folder_is_not_left_by_links() {
    let app = App::start().await;
    let token = app.token_secret(Scope::Submit, None).await;
    let outside = tempfile::tempdir().expect("a folder");
    let (secret, folder) = (outside.path().join("secret.json"), outside.path().join("results"));
    std::fs::write(&secret, good()).expect("a file");
    std::fs::create_dir(&folder).expect("a folder");
    symlink(&secret, folder.join("a.json")).expect("a link");
    let index = |name: &str| format!(r#"[{{"file": "{name}", "target": "servy"}}]"#);
    std::fs::write(folder.join("index.json"), index("a.json")).expect("an index");
    let import = ["run", "import", folder.to_str().expect("UTF-8")];
    let refused = as_user(&app, &token, &import).await.refused(1);
    assert!(refused.contains("skipped a.json: it is a link out of the folder"), "{refused}");
    assert!(refused.contains("nothing was imported"), "{refused}");
    // A link within the folder is fine.
    std::fs::write(folder.join("b.json"), good()).expect("a file");
    symlink("b.json", folder.join("c.json")).expect("a link");
    std::fs::write(folder.join("index.json"), index("c.json")).expect("an index");
    as_user(&app, &token, &import).await.ok();
    // Nor may the index lead out of it.
    std::fs::remove_file(folder.join("index.json")).expect("removed");
    symlink(&secret, folder.join("index.json")).expect("a link");
    let refused = as_user(&app, &token, &import).await.refused(1);
    assert!(refused.contains("is a link out of the folder"), "{refused}");
}
